//go:build e2e

// Package e2e runs the built program with the vendors' own SDKs in front of it and scripted upstreams behind it.
//
// It knows what a user knows: a configuration file, a port, and what the SDKs say. It never reaches into the program.
// It stands behind the build tag e2e because it needs node and the packages that package-lock.json pins; README.md
// says how to run it.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	binary string  // the program under test
	sdks   *driver // the SDKs
)

// parallelism is how many calls run at once. Most of them wait for a clock of the proxy, so this may be far more than
// there are processors; -parallel overrides it.
const parallelism = "16"

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	node, err := exec.LookPath("node")
	if err != nil {
		return notRun("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		return notRun("the SDKs are not installed: run npm ci in e2e")
	}

	dir, err := os.MkdirTemp("", "understudy-e2e-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("UNDERSTUDY"); binary == "" {
		binary = filepath.Join(dir, "understudy")
		build := exec.Command("go", "build", "-o", binary, "../cmd/understudy")
		if out, err := build.CombinedOutput(); err != nil {
			return failed(fmt.Errorf("build the program: %w\n%s", err, out))
		}
	}

	sdks, err = startDriver(node)
	if err != nil {
		return failed(err)
	}
	defer sdks.close()

	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallelism); err != nil {
			return failed(err)
		}
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the SDKs printed:\n%s", sdks.said.tail(8<<10))
	}
	return code
}

// notRun says that nothing was shown, which CI must not take for success.
func notRun(why string) int {
	fmt.Fprintf(os.Stderr, "e2e: NOT RUN: %s\n", why)
	if os.Getenv("CI") == "true" {
		return 1
	}
	return 0
}

func failed(err error) int {
	fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
	return 1
}
