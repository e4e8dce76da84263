package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"understudy/bench/load"
)

// The name of the divisor.
const bare = "bare ReverseProxy"

// chatPath is where clients send their requests.
const chatPath = "/v1/chat/completions"

// A contender is a proxy that is measured.
type contender struct {
	name  string
	model string // what its clients ask for
	key   string // that they have; "": none is asked for
	judge bool   // understudy itself, which has goals to meet
	// program is the file that is run.
	program func(b *bench) string
	// arrange writes the configuration into dir and returns the arguments.
	arrange func(b *bench, dir string, port int) ([]string, error)
}

// contenders are the rows of the table.
func contenders() []contender {
	return []contender{
		reference(bare, "bare"),
		reference("  with 4 KiB buffers", "lean"),
		reference("  that splices the model", "splice"),
		understudy("understudy, chain", alias, chainConfig),
		understudy("understudy, pool", "m-real", poolConfig),
		{name: "nginx, holding bodies", model: alias, program: installed("nginx"), arrange: nginx},
		{name: "HAProxy", model: alias, program: installed("haproxy"), arrange: haproxy},
	}
}

// alias is the virtual model.
const alias = "m-alias"

func reference(name, mode string) contender {
	return contender{name: name, model: alias, program: func(b *bench) string { return b.built("reference") },
		arrange: func(b *bench, _ string, port int) ([]string, error) {
			return []string{"-listen", loopback(port), "-to", "http://" + b.upstream.Addr, "-mode", mode}, nil
		}}
}

// understudy is our proxy with a configuration of the upstream's URL.
func understudy(name, model string, config func(upstream string) string) contender {
	return contender{name: name, model: model, judge: true, program: func(b *bench) string { return b.built("understudy") },
		arrange: func(b *bench, dir string, port int) ([]string, error) {
			admin, err := freePort()
			if err != nil {
				return nil, err
			}
			file := filepath.Join(dir, "understudy.yaml")
			return []string{"serve", "-c", file, "--no-repl", "--port", fmt.Sprint(port), "--admin", loopback(admin)},
				os.WriteFile(file, []byte(config("http://"+b.upstream.Addr)), 0o600)
		}}
}

// chainConfig is a virtual model with two candidates, and nothing else: the settings
// are those that understudy is shipped with.
func chainConfig(upstream string) string {
	return fmt.Sprintf(`virtual_models:
  %s:
    - {name: first, base_url: %q, api_key: sk-first-0123456789, model: m-real}
    - {name: second, base_url: %q, api_key: sk-second-0123456789, model: m-real}
`, alias, upstream, upstream)
}

// poolConfig is a pool of two.
func poolConfig(upstream string) string {
	return fmt.Sprintf(`upstream:
  - {id: one, base_url: %q, api_key: sk-first-0123456789}
  - {id: two, base_url: %q, api_key: sk-second-0123456789}
`, upstream, upstream)
}

// installed finds a program of the system's.
func installed(name string) func(*bench) string {
	return func(*bench) string {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		path := "/usr/sbin/" + name // which is not on every user's PATH
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
}

// nginx holds each request's body in memory before it sends it on, as one must who
// wants to send it again.
func nginx(b *bench, dir string, port int) ([]string, error) {
	file := filepath.Join(dir, "nginx.conf")
	return []string{"-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", file}, os.WriteFile(file, fmt.Appendf(nil, `daemon off;
worker_processes 2;
pid nginx.pid;
error_log error.log error;
events { worker_connections 9000; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  client_max_body_size 64m;
  client_body_buffer_size 40m;
  keepalive_requests 1000000;
  upstream mock { server %s; keepalive 512; keepalive_requests 1000000; }
  server {
    listen %s backlog=4096;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_next_upstream error timeout http_503 http_429 non_idempotent;
      proxy_read_timeout 300s;
    }
  }
}
`, b.upstream.Addr, loopback(port)), 0o600)
}

func haproxy(b *bench, dir string, port int) ([]string, error) {
	file := filepath.Join(dir, "haproxy.cfg")
	return []string{"-f", file, "-db"}, os.WriteFile(file, fmt.Appendf(nil, `global
  nbthread 2
  maxconn 9000
defaults
  mode http
  http-reuse always
  timeout client 300s
  timeout server 300s
  timeout connect 10s
  option http-no-delay
frontend in
  bind %s
  default_backend out
backend out
  server mock %s
`, loopback(port), b.upstream.Addr), 0o600)
}

// start runs a contender in a directory of its own and waits for its first answer.
func (b *bench) start(ctx context.Context, c contender, env ...string) (*process, error) {
	program := c.program(b)
	if program == "" {
		return nil, fmt.Errorf("%s is not installed", c.name)
	}
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args, err := c.arrange(b, dir, port)
	if err != nil {
		return nil, err
	}
	to := load.Target{Addr: loopback(port), Path: chatPath, Key: c.key}
	request := to.Request(load.Body(c.model, false))
	began := time.Now()
	p, err := b.spawn(filepath.Base(dir), append(env, "XDG_STATE_HOME="+dir), slices.Concat(b.prefix, []string{program}, args)...)
	if err != nil {
		return nil, err
	}
	if err := p.answers(ctx, to, request, began); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}
