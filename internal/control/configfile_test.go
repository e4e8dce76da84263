package control

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

const fileText = `# The one file.
server:
  stall_timeout: 30 # seconds
virtual_models:
  auto:
    # the good one
    - {name: a, base_url: "https://a.example.com", model: m, api_key: sk-proj-abcdefghijklmnop1234}
    - name: b
      base_url: https://user:pass-word-1@b.example.com
      model: m
      api_key: short-key-1 # kept
`

func TestConfigFileShowsNoSecret(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	f, err := r.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"abcdefghijklmnop", "pass-word-1", "short-key-1"} {
		if strings.Contains(f.Text, secret) {
			t.Errorf("%s is shown in\n%s", secret, f.Text)
		}
	}
	if !strings.Contains(f.Text, "api_key: sk-pro***1234}") || !strings.Contains(f.Text, "# the good one") || f.Format != "yaml" || !f.InForce || len(f.Masks) != 3 || len(f.Hash) != 64 {
		t.Errorf("%+v", f)
	}
	if len(f.Problems) != 0 {
		t.Errorf("%+v", f.Problems)
	}
}

func TestWriteConfigPutsSecretsBackAndKeepsTheRest(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	f, err := r.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(f.Text, "stall_timeout: 30", "stall_timeout: 45", 1)
	w, err := r.WriteConfig(context.Background(), "web", f.Hash, text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.file(), strings.Replace(fileText, "stall_timeout: 30", "stall_timeout: 45", 1); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	if s := r.handler.Snapshot().Config.Server.StallTimeout.Seconds(); s != 45 {
		t.Errorf("%v is in force", s)
	}
	again, err := r.ConfigFile()
	if err != nil || again.Hash != w.Hash || !again.InForce {
		t.Errorf("%+v %+v %v", again, w, err)
	}
	if log := r.log.String(); !strings.Contains(log, "who=web command=config") || strings.Contains(log, "short-key") {
		t.Error(log)
	}
	restart := strings.Replace(again.Text, "server:", "server:\n  port: 1234", 1)
	if w, err := r.WriteConfig(context.Background(), "web", again.Hash, restart); err != nil || len(w.NeedsRestart) != 1 || w.NeedsRestart[0] != "port" {
		t.Errorf("%+v %v", w, err)
	}
}

func TestWriteConfigRefusesMistakes(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	f, err := r.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from, to string
		line     int
		what     string
	}{
		{"stall_timeout: 30", "stall_timeot: 30", 3, "unknown key"},
		{"model: m\n", "model: [m\n", 0, "not valid YAML"},
		{"api_key: ***(2) #", "api_key: sk-xyz***9999 #", 11, "a mask"},
		{"name: b", "name: sk***(2)", 8, "a mask"},
	} {
		if !strings.Contains(f.Text, test.from) {
			t.Fatalf("no %q in\n%s", test.from, f.Text)
		}
		text := strings.Replace(f.Text, test.from, test.to, 1)
		checked, err := r.CheckConfig(f.Hash, text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.WriteConfig(context.Background(), "web", f.Hash, text)
		mistakes, ok := errors.AsType[Mistakes](err)
		if !ok || len(mistakes) == 0 || len(checked) != len(mistakes) || checked[0] != mistakes[0] {
			t.Fatalf("%q: %v, checked %v", test.to, err, checked)
		}
		if p := mistakes[0]; test.line > 0 && p.Line != test.line || !strings.Contains(p.What, test.what) || p.Severity != "error" || !strings.Contains(err.Error(), p.What) {
			t.Errorf("%q: %+v", test.to, p)
		}
		if r.file() != fileText {
			t.Fatalf("%q was written", test.to)
		}
	}
}

func TestWriteConfigOverwritesNobody(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	f, err := r.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(fileText, "the good one", "somebody else's", 1)
	r.write(other)
	if _, err := r.CheckConfig(f.Hash, f.Text); !errors.Is(err, ErrFileChanged) {
		t.Error(err)
	}
	if _, err := r.WriteConfig(context.Background(), "web", f.Hash, f.Text); !errors.Is(err, ErrFileChanged) || r.file() != other {
		t.Errorf("%v\n%s", err, r.file())
	}
	if f, err := r.ConfigFile(); err != nil || f.InForce {
		t.Errorf("%+v %v", f, err)
	}
}

func TestABrokenFileIsShownAndMended(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	r.write(strings.Replace(fileText, "model: m\n", "model: [m\n", 1))
	f, err := r.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Problems) == 0 || f.Problems[0].Severity != "error" || strings.Contains(f.Text, "short-key-1") || !strings.Contains(f.Text, "model: [m") {
		t.Fatalf("%+v", f)
	}
	if _, err := r.WriteConfig(context.Background(), "web", f.Hash, strings.Replace(f.Text, "model: [m", "model: m", 1)); err != nil || r.file() != fileText {
		t.Errorf("%v\n%s", err, r.file())
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ConfigFile(); err == nil {
		t.Error("a file that is gone was shown")
	}
}
