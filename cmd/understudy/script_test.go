package main

import (
	"flag"
	"maps"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	commands := map[string]func(){
		"understudy": main,
		panics:       consolePanics,
	}
	maps.Copy(commands, systemCommands)
	testscript.Main(tidy{m}, commands)
}

var update = flag.Bool("update", false, "write the scripts' expected output anew")

// The scripts drive the real command line, exit codes included.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script")
}

// The drill's scripts measure time on scaled clocks: they run apart from everything
// else, one after another and without the race detector (make drill).
func TestDrillScripts(t *testing.T) { runScripts(t, "testdata/drill") }

func runScripts(t *testing.T, dir string) {
	t.Helper()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: dir, Cmds: scriptCommands(), UpdateScripts: *update, Setup: func(e *testscript.Env) error {
		e.Setenv("EXAMPLES", examples)
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config-home")
		e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state-home")
		return nil
	}})
}
