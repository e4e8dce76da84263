//go:build e2e

// Package agents runs coding agents as people run them, each with the built program as its only model provider and
// scripted upstreams behind that.
//
// It knows what a user knows: a configuration file, a port, the agents' own settings, and what they print. It stands
// behind the build tag e2e because it needs node and the programs that package-lock.json pins; README.md says how to run
// it.
package agents

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var binary string // the program under test

// parallelism is how many agents run at once; -parallel overrides it. Starting one keeps a processor busy.
const parallelism = "4"

func TestMain(m *testing.M) { os.Exit(start(m)) }

func start(m *testing.M) int {
	if _, err := exec.LookPath("node"); err != nil {
		return notRun("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		return notRun("the agents are not installed: run npm ci in e2e/agents")
	}
	for _, a := range agents {
		if a.command() == nil {
			fmt.Fprintf(os.Stderr, "e2e/agents: NOT RUN: %s: npm has no program of it for this system\n", a.name)
		}
	}
	dir, err := os.MkdirTemp("", "understudy-agents-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("UNDERSTUDY"); binary == "" {
		binary = filepath.Join(dir, "understudy")
		build := exec.Command("go", "build", "-o", binary, "../../cmd/understudy")
		if out, err := build.CombinedOutput(); err != nil {
			return failed(fmt.Errorf("build the program: %w\n%s", err, out))
		}
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallelism); err != nil {
			return failed(err)
		}
	}
	return m.Run()
}

// notRun says that nothing was shown, which CI must not take for success.
func notRun(why string) int {
	fmt.Fprintf(os.Stderr, "e2e/agents: NOT RUN: %s\n", why)
	if os.Getenv("CI") == "true" {
		return 1
	}
	return 0
}

func failed(err error) int {
	fmt.Fprintf(os.Stderr, "e2e/agents: %v\n", err)
	return 1
}
