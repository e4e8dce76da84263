package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"understudy/bench/load"
)

const (
	startTime = 20 * time.Second // how long a process may take to answer
	stopTime  = 6 * time.Second  // how long it may take to end after SIGTERM
)

// A process is one that this program started, and so may end.
type process struct {
	cmd   *exec.Cmd
	to    load.Target   // where it answers
	ready time.Duration // from exec to the first 200
	done  chan error
	log   string
}

// pid is the process's number.
func (p *process) pid() int { return p.cmd.Process.Pid }

// spawn starts a program with its output in a file. It is called on the main thread
// alone (see init): the kernel ends the child when the thread that started it ends.
func (b *bench) spawn(name string, env []string, argv ...string) (*process, error) {
	p := &process{done: make(chan error, 1), log: filepath.Join(b.dir, name+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(environment(b.dir), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// environment is what children see: no proxy variables, and a home of their own.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "TMPDIR=" + home}
}

// answers waits until the process answers a request at to with 200, and takes the time.
func (p *process) answers(ctx context.Context, to load.Target, request []byte, began time.Time) error {
	p.to = to
	if !load.Until(to, request, startTime, func() bool { return ctx.Err() == nil && p.lives() }) {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s does not answer with 200: %s", filepath.Base(p.cmd.Path), text[max(0, len(text)-600):])
	}
	p.ready = time.Since(began)
	return nil
}

// lives says whether the process has not ended.
func (p *process) lives() bool {
	select {
	case err := <-p.done:
		p.done <- err
		return false
	default:
		return true
	}
}

// stop ends the process: gently first, then with all that it started, which is its
// process group.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(stopTime):
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
		p.done <- <-p.done
	}
}

// freePort finds a port below those that the kernel gives to outgoing connections,
// of which there will be thousands.
func freePort() (int, error) {
	for range 200 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port between 20000 and 32000")
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
