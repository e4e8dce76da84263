package upstreamtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

func TestConnKeepsTheContractOfNetConn(t *testing.T) {
	for name, buffer := range map[string]int{"roomy": 0, "narrow": 16, "odd": 1000} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				a, b := Pipe(buffer)
				return a, b, func() { a.Close(); b.Close() }, nil
			})
		})
	}
}

func TestWriteBlocksWhileTheBufferIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(8)
		defer a.Close()
		var wrote int
		done := make(chan struct{})
		go func() {
			defer close(done)
			wrote, _ = a.Write([]byte("0123456789abcdef"))
		}()
		synctest.Wait()
		if got := b.Buffered(); got != 8 {
			t.Errorf("buffered %d bytes, want the limit, 8", got)
		}
		select {
		case <-done:
			t.Error("the write returned although nobody read")
		default:
		}
		p := make([]byte, 16)
		if _, err := io.ReadFull(b, p); err != nil || string(p) != "0123456789abcdef" {
			t.Errorf("read %q, %v", p, err)
		}
		<-done
		if wrote != 16 {
			t.Errorf("wrote %d bytes, want 16", wrote)
		}
	})
}

func TestBlockedWritersDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(3)
		var wg sync.WaitGroup
		for _, s := range []string{"aaaaaaaaaa", "bbbbbbbbbb"} {
			wg.Go(func() { a.Write([]byte(s)) })
		}
		go func() { wg.Wait(); a.Close() }()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, []byte("aaaaaaaaaabbbbbbbbbb")) && !bytes.Equal(got, []byte("bbbbbbbbbbaaaaaaaaaa")) {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestDeadlinesPassAtTheirExactTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(4)
		defer a.Close()
		defer b.Close()
		start := time.Now()

		a.SetReadDeadline(start.Add(3 * time.Second))
		_, err := a.Read(make([]byte, 1))
		if took := time.Since(start); took != 3*time.Second || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read ended after %v with %v", took, err)
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}

		a.SetWriteDeadline(start.Add(10 * time.Second))
		n, err := a.Write(make([]byte, 9))
		if took := time.Since(start); took != 10*time.Second || n != 4 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write of %d bytes ended after %v with %v", n, took, err)
		}

		// A deadline moved while somebody waits counts at once.
		a.SetReadDeadline(time.Time{})
		go func() {
			<-time.After(time.Second)
			a.SetReadDeadline(time.Now().Add(time.Second))
		}()
		_, err = a.Read(make([]byte, 1))
		if took := time.Since(start); took != 12*time.Second || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("second read ended after %v with %v", took, err)
		}
	})
}

func TestHalfCloseLeavesTheOtherDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(0)
		a.Write([]byte("question"))
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(b); string(got) != "question" || err != nil {
			t.Errorf("b read %q, %v", got, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseWrite: %v, want EPIPE", err)
		}
		b.Write([]byte("answer"))
		b.Close()
		if got, err := io.ReadAll(a); string(got) != "answer" || err != nil {
			t.Errorf("a read %q, %v", got, err)
		}
	})
}

func TestResetReachesReaderAndWriterOfThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(16)
		var waiting error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, waiting = b.Write(make([]byte, 100))
		}()
		synctest.Wait()
		a.Write([]byte("last words"))
		if err := a.Reset(); err != nil {
			t.Errorf("Reset: %v", err)
		}
		got, err := io.ReadAll(b)
		if string(got) != "last words" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("b read %q, %v, want all that was sent and ECONNRESET", got, err)
		}
		<-done
		if !errors.Is(waiting, syscall.ECONNRESET) {
			t.Errorf("the waiting write got %v, want ECONNRESET", waiting)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a's own read: %v, want net.ErrClosed", err)
		}
		if err := a.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v, want net.ErrClosed", err)
		}
	})
}

func TestCloseEndsWhatThePeerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(4)
		var n int
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			n, err = b.Write(make([]byte, 10))
		}()
		synctest.Wait()
		a.Close()
		<-done
		if n != 4 || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("wrote %d, %v, want 4 bytes and EPIPE", n, err)
		}
	})
}
