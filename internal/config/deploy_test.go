package config

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// documents decodes the YAML documents of a file.
func documents(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, doc)
	}
}

// at follows keys and indices into a document.
func at(t *testing.T, v any, steps ...any) any {
	t.Helper()
	for i, step := range steps {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any) // nothing else has members
			member, ok := m[step]
			if !ok {
				t.Fatalf("nothing at %v", steps[:i+1])
			}
			v = member
		case int:
			list, ok := v.([]any)
			if !ok || len(list) <= step {
				t.Fatalf("nothing at %v", steps[:i+1])
			}
			v = list[step]
		}
	}
	return v
}

func wholeAt(t *testing.T, v any, steps ...any) int {
	t.Helper()
	n, ok := at(t, v, steps...).(uint64)
	if !ok {
		t.Fatalf("no whole number at %v", steps)
	}
	return int(n)
}

// served parses a configuration that stands in another file, with all its variables
// set.
func served(t *testing.T, text string, variables map[string]any) *Config {
	t.Helper()
	for _, name := range regexp.MustCompile(`_env: (\w+)`).FindAllStringSubmatch(text, -1) {
		if _, known := variables[name[1]]; !known {
			t.Errorf("%s is named and not set", name[1])
		}
		t.Setenv(name[1], "sk-a-value-of-a-test")
	}
	cfg, problems := Parse(Source{Path: "understudy.yaml", Bytes: []byte(text), Mode: 0o600})
	if cfg == nil || len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	if cfg.Store == nil || len(cfg.Clients) == 0 || cfg.Server.Host != "0.0.0.0" {
		t.Errorf("store %v, %d clients, host %s: it is to be reached by clients with keys", cfg.Store, len(cfg.Clients), cfg.Server.Host)
	}
	return cfg
}

// storeHost is the host and port of a configuration's store.
func storeHost(t *testing.T, cfg *Config) string {
	t.Helper()
	s, err := cfg.Store.URL.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func inSeconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestComposeExample(t *testing.T) {
	docs := documents(t, "../../examples/compose.yaml")
	if len(docs) != 1 {
		t.Fatalf("%d documents", len(docs))
	}
	doc := docs[0]
	instance := at(t, doc, "services", "one").(map[string]any)
	cfg := served(t, at(t, doc, "configs", "understudy", "content").(string), instance["environment"].(map[string]any))
	services := at(t, doc, "services").(map[string]any)
	if host, _, _ := strings.Cut(storeHost(t, cfg), ":"); services[host] == nil {
		t.Errorf("no service %s for the store", host)
	}
	grace, err := time.ParseDuration(instance["stop_grace_period"].(string))
	if err != nil || grace <= cfg.Server.DrainTimeout {
		t.Errorf("stop_grace_period %v is not longer than drain_timeout %v", grace, cfg.Server.DrainTimeout)
	}
	balancer := at(t, doc, "configs", "balancer", "content").(string)
	port := strconv.Itoa(cfg.Server.Port)
	for name := range services {
		if name != "redis" && name != "balancer" && !strings.Contains(balancer, "server "+name+" "+name+":"+port) {
			t.Errorf("the balancer does not know %s at port %s", name, port)
		}
	}
	wait := regexp.MustCompile(`timeout server (\d+)m`).FindStringSubmatch(balancer)
	if minutes, _ := strconv.Atoi(wait[1]); time.Duration(minutes)*time.Minute <= cfg.Server.ChainTimeout {
		t.Errorf("the balancer gives up after %s min, before chain_timeout %v", wait[1], cfg.Server.ChainTimeout)
	}
	if cmd := instance["command"].([]any); cmd[len(cmd)-1] != at(t, instance, "configs", 0, "target") {
		t.Errorf("it reads %v", cmd)
	}
}

func TestKubernetesExample(t *testing.T) {
	const dir = "../../examples/kubernetes"
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	var names []string
	for _, f := range files {
		if base := filepath.Base(f); base != "kustomization.yaml" {
			names = append(names, base)
			for _, doc := range documents(t, f) {
				objects[at(t, doc, "kind").(string)+" "+at(t, doc, "metadata", "name").(string)] = doc
			}
		}
	}
	var listed []string
	for _, name := range at(t, documents(t, dir+"/kustomization.yaml")[0], "resources").([]any) {
		listed = append(listed, name.(string))
	}
	slices.Sort(listed)
	if !slices.Equal(names, listed) {
		t.Errorf("kustomization.yaml lists %v of %v", listed, names)
	}
	cfg := served(t, at(t, objects["ConfigMap understudy"], "data", "understudy.yaml").(string), at(t, objects["Secret understudy"], "stringData").(map[string]any))
	host, port, _ := strings.Cut(storeHost(t, cfg), ":")
	if p := wholeAt(t, objects["Service "+host], "spec", "ports", 0, "port"); strconv.Itoa(p) != port {
		t.Errorf("the store is at port %d, not %s", p, port)
	}
	pod := at(t, objects["Deployment understudy"], "spec", "template")
	container := at(t, pod, "spec", "containers", 0)
	if p := wholeAt(t, container, "ports", 0, "containerPort"); p != cfg.Server.Port || at(t, container, "ports", 0, "name") != "http" {
		t.Errorf("the container's port is %d, the configuration's %d", p, cfg.Server.Port)
	}
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		get := at(t, container, probe, "httpGet").(map[string]any)
		if get["path"] != "/healthz" || get["port"] != "http" {
			t.Errorf("%s asks for %v", probe, get)
		}
	}
	grace, wait := inSeconds(wholeAt(t, pod, "spec", "terminationGracePeriodSeconds")), inSeconds(wholeAt(t, container, "lifecycle", "preStop", "sleep", "seconds"))
	if grace <= wait+cfg.Server.DrainTimeout {
		t.Errorf("terminationGracePeriodSeconds %v is not longer than the preStop wait %v and drain_timeout %v", grace, wait, cfg.Server.DrainTimeout)
	}
	labels := at(t, pod, "metadata", "labels").(map[string]any)
	for what, selector := range map[string]any{
		"Deployment": at(t, objects["Deployment understudy"], "spec", "selector", "matchLabels"),
		"Service":    at(t, objects["Service understudy"], "spec", "selector"),
		"budget":     at(t, objects["PodDisruptionBudget understudy"], "spec", "selector", "matchLabels"),
	} {
		for k, v := range selector.(map[string]any) {
			if labels[k] != v {
				t.Errorf("%s selects %s=%v, the pods have %v", what, k, v, labels)
			}
		}
	}
	mounts := map[any]any{}
	for _, m := range at(t, container, "volumeMounts").([]any) {
		mounts[at(t, m, "mountPath")] = at(t, m, "name")
	}
	args := at(t, container, "args").([]any)
	if mounts[cfg.Server.StateDir] == nil || mounts[filepath.Dir(args[len(args)-1].(string))] == nil {
		t.Errorf("state_dir %s and %v are not both mounted: %v", cfg.Server.StateDir, args[len(args)-1], mounts)
	}
}
