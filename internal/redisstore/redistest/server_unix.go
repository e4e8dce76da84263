//go:build unix

package redistest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for the server.
const patience = 20 * time.Second

// A Server is a redis-server process on a port of 127.0.0.1. It keeps nothing on
// disk, so that what is restarted is empty.
type Server struct {
	t      testing.TB
	args   []string
	addr   string
	secure bool // it speaks TLS alone

	mu  sync.Mutex
	cmd *exec.Cmd
	out *bytes.Buffer
}

// Start starts a server that ends with the test. args are added to its command line.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(&Server{t: t, args: args})
}

// StartTLS is Start with a server that speaks TLS alone, by a certificate and a key in
// files (PEM), and asks its clients for none.
func StartTLS(t testing.TB, cert, key string, args ...string) *Server {
	t.Helper()
	return start(&Server{t: t, secure: true, args: append([]string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"}, args...)})
}

func start(s *Server) *Server {
	t := s.t
	t.Helper()
	t.Cleanup(s.Kill)
	// The port may be taken by somebody else between its choice and its use.
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.addr = l.Addr().String()
		l.Close()
		if s.launch() {
			return s
		}
	}
	t.Fatalf("redis-server does not start: %s", s.out)
	return nil
}

// Addr is where it listens, the same after a restart.
func (s *Server) Addr() string { return s.addr }

// launch starts the process and waits until it answers; false where it has ended.
func (s *Server) launch() bool {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	s.mu.Lock()
	s.out = new(bytes.Buffer)
	listen := []string{"--port", port}
	if s.secure {
		listen = []string{"--port", "0", "--tls-port", port}
	}
	s.cmd = exec.Command("redis-server", append(append(listen, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.t.TempDir()), s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	err := s.cmd.Start()
	cmd := s.cmd
	s.mu.Unlock()
	if err != nil {
		s.t.Fatalf("start redis-server (Debian has it in redis-server): %v", err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process, which Kill sees to
		_ = cmd.Wait()
		close(ended)
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		if s.answers() {
			return true
		}
		select {
		case <-ended:
			return false
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("redis-server does not answer: %s", s.out)
		}
	}
}

// answers says whether the server answers a PING, whatever it says.
func (s *Server) answers() bool {
	text, err := s.say("PING")
	return err == nil && text != ""
}

// say sends an inline command, after the password where there is one, and returns the
// first line of the answer.
func (s *Server) say(command string) (string, error) {
	c, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return "", err
	}
	if s.secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // it is ours
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	answers := bufio.NewReader(c)
	var line string
	commands := []string{command}
	if i := slices.Index(s.args, "--requirepass"); i >= 0 {
		commands = []string{"AUTH " + s.args[i+1], command}
	}
	for _, command := range commands {
		if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
			return "", err
		}
		if line, err = answers.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(line), nil
}

// Kill ends the process at once.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd := s.cmd
	s.mu.Unlock()
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = cmd.Process.Kill()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for cmd.Process.Signal(syscall.Signal(0)) == nil {
		<-tick.C
	}
}

// Restart kills the server and starts it again, empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.launch() {
		s.t.Fatalf("redis-server does not start again: %s", s.out)
	}
}

// Pause stops the process without ending it, so that connections stay open and
// nothing is answered.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Flush has the server forget everything.
func (s *Server) Flush() {
	s.t.Helper()
	if text, err := s.say("FLUSHALL"); err != nil || text != "+OK" {
		s.t.Fatalf("FLUSHALL: %q, %v", text, err)
	}
}
