package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"understudy/internal/console"
	"understudy/internal/control"
)

// builtIn is where the tests of the screen have built the program, "" if none has.
var builtIn string

// tidy runs the tests and takes away what they have built.
type tidy struct{ tests testscript.TestingM }

// Run is testing.M's.
func (m tidy) Run() int {
	code := m.tests.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	return code
}

// scriptCommands are what the scripts know besides the usual: up, down and crash.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	var served sync.Map // *exec.Cmd by script: they run side by side
	return map[string]func(*testscript.TestScript, bool, []string){
		// up config [option ...] serves a configuration and sets ADMIN and PROXY to the
		// URLs of its listeners.
		"up": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) == 0 {
				ts.Fatalf("usage: up config [option ...]")
			}
			cmd := exec.Command(program(ts), append([]string{"serve", "--no-repl", "-c", ts.MkAbs(args[0])}, args[1:]...)...)
			cmd.Dir = ts.MkAbs(".")
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "PATH", "SYSTEMROOT"} {
				cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
			}
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			ts.Check(err)
			ts.Check(cmd.Start())
			served.Store(ts, cmd)
			ts.Defer(func() {
				if _, up := served.LoadAndDelete(ts); up {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				}
			})
			found := 0
			for lines := bufio.NewScanner(out); found < 2; {
				if !lines.Scan() {
					ts.Fatalf("serve ended early: %s", errs.String())
				}
				for _, name := range []string{"proxy", "admin"} {
					if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), name+"  "); ok {
						ts.Setenv(strings.ToUpper(name), url)
						found++
					}
				}
			}
		},
		// down ends what up has begun, and expects it to end well.
		"down": func(ts *testscript.TestScript, neg bool, args []string) {
			one, up := served.LoadAndDelete(ts)
			if !up {
				ts.Fatalf("nothing is up")
			}
			cmd := one.(*exec.Cmd)
			if runtime.GOOS == "windows" {
				ts.Check(cmd.Process.Kill())
				_ = cmd.Wait()
				return
			}
			ts.Check(cmd.Process.Signal(syscall.SIGTERM))
			ts.Check(cmd.Wait())
		},
		// crash ends what up has begun as kill -9 does.
		"crash": func(ts *testscript.TestScript, neg bool, args []string) {
			one, up := served.LoadAndDelete(ts)
			if !up {
				ts.Fatalf("nothing is up")
			}
			cmd := one.(*exec.Cmd)
			ts.Check(cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		},
	}
}

// panics is the name of a console that has a mistake of its own, see consolePanics.
const panics = "console-panics"

// consolePanics runs a console that panics as soon as a line is run: in the command, in
// the View after it, or outside the console.
func consolePanics() {
	where, ran := os.Args[1], make(chan struct{})
	isOver := func() bool {
		select {
		case <-ran:
			return true
		default:
			return false
		}
	}
	source := console.Source{
		Run: func(context.Context, string) (control.Output, error) {
			if where == "command" {
				panic("a mistake of ours")
			}
			close(ran)
			return control.Output{}, nil
		},
		View: func(context.Context) (control.View, error) {
			if where == "view" && isOver() {
				panic("a mistake of ours")
			}
			return control.View{}, nil
		},
	}
	restore := console.Guard(os.Stdin, os.Stdout)
	ended := make(chan error, 1)
	go func() {
		ended <- console.Interactive(context.Background(), console.Options{Source: source, In: os.Stdin, Out: os.Stdout})
	}()
	if where == "outside" {
		<-ran
		defer restore()
		panic("a mistake of ours")
	}
	if err := <-ended; errors.Is(err, console.ErrPanic) {
		os.Exit(exitFailed)
	}
}

// program is where a script finds understudy.
func program(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		for _, name := range []string{"understudy", "understudy.exe"} {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	ts.Fatalf("no understudy on the PATH")
	return ""
}
