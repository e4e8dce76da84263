package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/windows/svc"

	"understudy/internal/config"
	"understudy/internal/files"
)

// asService runs a process that Windows' service manager has started: `sc create
// understudy binPath= "C:\...\understudy.exe serve -c C:\...\understudy.yaml"`. A
// service has no console, so what it would print goes to a file.
func asService() (code int, is bool) {
	if is, err := svc.IsWindowsService(); err != nil || !is {
		return 0, false
	}
	return serviceMain(), true
}

// serviceMain is main for the service manager.
func serviceMain() (code int) {
	log, err := openServiceLog(filepath.Join(config.DefaultStateDir(), "service.log"))
	if err != nil {
		return exitFailed
	}
	defer log.Close()
	s := &service{std: streams{in: emptyInput{}, out: log, err: log}}
	underManager = s
	if err := svc.Run("understudy", s); err != nil {
		fmt.Fprintf(log, "understudy: service manager: %v\n", err)
		return exitFailed
	}
	return s.code
}

// A service is the process between the service manager and serve.
type service struct {
	std  streams
	code int

	mu      sync.Mutex
	signals chan<- os.Signal // nil until serve listens
	asked   bool             // to stop, before it did
}

// to is underManager's.
func (s *service) to(signals chan<- os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = signals
	if s.asked {
		signals <- os.Interrupt
	}
}

func (s *service) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked = true; s.signals != nil {
		s.signals <- os.Interrupt
	}
}

// Execute implements svc.Handler. A stop lets running requests finish, as Ctrl-C
// does; a second one, which the manager sends when the machine goes down, stops at
// once.
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (specific bool, code uint32) {
	const accepts = svc.AcceptStop | svc.AcceptShutdown
	status <- svc.Status{State: svc.Running, Accepts: accepts}
	done := make(chan int, 1)
	go func() { done <- run(os.Args[1:], s.std) }()
	for {
		select {
		case s.code = <-done:
			status <- svc.Status{State: svc.StopPending}
			return s.code != exitOK, uint32(s.code)
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				status <- request.CurrentStatus
			case svc.Stop:
				// The hint is how long until the next news, in ms: as long as it may drain.
				status <- svc.Status{State: svc.StopPending, Accepts: svc.AcceptShutdown, WaitHint: 310_000}
				s.stop()
			case svc.Shutdown:
				status <- svc.Status{State: svc.StopPending, WaitHint: 10_000}
				s.stop()
				s.stop()
			}
		}
	}
}

// emptyInput is the standard input of a process that has none.
type emptyInput struct{}

// Read implements io.Reader.
func (emptyInput) Read([]byte) (int, error) { return 0, os.ErrClosed }

// maxServiceLog is how large the file grows, in bytes, before it becomes the old one.
const maxServiceLog = 10 << 20

// A serviceLog is a file that is replaced by a new one when it has grown; one old one
// is kept. It is safe for concurrent use.
type serviceLog struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

func openServiceLog(path string) (*serviceLog, error) {
	if err := files.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l := &serviceLog{path: path}
	return l, l.open()
}

func (l *serviceLog) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err == nil {
		l.size = info.Size()
	}
	return err
}

// Write implements io.Writer.
func (l *serviceLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > maxServiceLog {
		// Where the old one cannot be replaced, the file goes on growing: a log that is
		// too long is better than none.
		if l.file.Close() == nil {
			_ = files.Replace(l.path, l.path+".old")
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *serviceLog) Close() error { return l.file.Close() }
