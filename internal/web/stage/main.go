// Stage runs the dashboard over fake upstreams: the real daemon and the real admin
// listener, a day of made-up history, and clients that go on calling. It is what the
// browser tests and the screenshots of the documentation look at, and a place to
// look at a change of the dashboard. It needs no key and no network.
//
// It prints its addresses on one line of JSON and runs until its input ends, or for
// good on a terminal.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"understudy/internal/daemon"
	"understudy/internal/drill"
	"understudy/internal/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
}

// addresses are what the stage prints.
type addresses struct {
	Proxy  string `json:"proxy"`
	Admin  string `json:"admin"`
	Config string `json:"config"`
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	quiet := flag.Bool("quiet", false, "no clients: only the history")
	bare := flag.Bool("bare", false, "no history either, as after the first start")
	rehearse := flag.Bool("rehearsal", false, "with virtual models that do the same every time, for tests")
	pictures := flag.Bool("show", false, "with what the documentation's pictures show")
	pace := flag.Float64("pace", 2, "requests per second")
	listen := flag.String("admin", "127.0.0.1:0", "the admin listener's address")
	flag.Parse()

	dir, err := os.MkdirTemp("", "understudy-stage-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, scripts := configuration(dir), parts()
	if *rehearse {
		text = strings.Replace(text, "\n# Everything else", rehearsalModels+"\n# Everything else", 1)
		maps.Copy(scripts, rehearsalParts())
	}
	cast := raise(scripts)
	defer cast.close()
	path := filepath.Join(dir, "understudy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	d, err := daemon.Open(daemon.Options{ConfigPath: path, Admin: listen, Log: log, Dial: cast.dial,
		AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control("1.0.0"), log) }})
	if err != nil {
		return err
	}
	if !*bare {
		if err := past(ctx, d); err != nil {
			return err
		}
	}
	if *pictures {
		show(d)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ctx) }()
	if !*quiet && !*bare {
		go callers(ctx, d.Addr(), *pace)
	}
	if err := json.NewEncoder(out).Encode(addresses{Proxy: d.Addr(), Admin: d.AdminAddr(), Config: path}); err != nil {
		return err
	}
	go func() {
		if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return
		}
		_, _ = io.Copy(io.Discard, in) // whoever started this has left when it ends
		end()
	}()
	return <-ended
}

// A company is the fake upstreams, by the host that a configuration names.
type company struct{ hosts map[string]*drill.Upstream }

// raise starts every upstream of the configuration.
func raise(scripts map[string]drill.Script) *company {
	c := &company{hosts: map[string]*drill.Upstream{}}
	for host, script := range scripts {
		c.hosts[host] = drill.Start(script)
	}
	return c
}

// dial leads the names of the configuration to the fake upstreams. One that is
// nobody's refuses, as a machine does that is switched off.
func (c *company) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	to := "127.0.0.1:1"
	if u := c.hosts[host]; u != nil {
		to = u.Addr()
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

func (c *company) close() {
	for _, u := range c.hosts {
		u.Close()
	}
}
