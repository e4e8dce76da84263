package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"understudy/internal/config"
)

// healthcheckCommand asks a running process whether it serves.
type healthcheckCommand struct {
	configFlag
	URL     string        `arg:"" optional:"" help:"Address of the proxy; without it the one in the configuration file, or http://127.0.0.1:8787."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// defaultProxy is where a process listens whose file does not say otherwise.
const defaultProxy = "http://127.0.0.1:8787"

// maxHealth bounds what is read of an answer, in bytes.
const maxHealth = 64 << 10

// Run asks /healthz, which calls no upstream and needs no key, and prints one line.
// It ends with exit code 0 where the process serves and 1 whatever else is the case:
// container engines know no other codes.
func (c *healthcheckCommand) Run(std streams) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	line, err := c.ask(ctx)
	if err != nil {
		fmt.Fprintf(std.err, "understudy: unhealthy: %v\n", err)
		return quiet{exitFailed}
	}
	_, err = fmt.Fprintln(std.out, line)
	return err
}

func (c *healthcheckCommand) ask(ctx context.Context) (string, error) {
	base, pinned, err := c.where()
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/healthz", nil)
	if err != nil {
		return "", fmt.Errorf("the address %s: %w", base, err)
	}
	// Straight to the process: a proxy of the environment's has no business here.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: pinned}}
	response, err := client.Do(request)
	if err != nil {
		if told, ok := errors.AsType[*url.Error](err); ok {
			err = told.Err
		}
		return "", fmt.Errorf("%s does not answer: %w", base, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealth))
	if err != nil {
		return "", fmt.Errorf("%s: %w", base, err)
	}
	var health struct {
		Status           string `json:"status"`
		FrozenCandidates int    `json:"frozen_candidates"`
		TotalRequests    int64  `json:"total_requests"`
	}
	if err := json.Unmarshal(body, &health); response.StatusCode != http.StatusOK || err != nil || health.Status == "" {
		return "", fmt.Errorf("%s answers %d, and not as understudy does", base, response.StatusCode)
	}
	if health.Status != "ok" {
		return "", fmt.Errorf("%s says %q", base, health.Status)
	}
	return fmt.Sprintf("ok: %s, %s frozen, %s", base, count(health.FrozenCandidates, "candidate"), count(int(health.TotalRequests), "request")), nil
}

// where is the proxy's address and, where it speaks TLS, how to know it: by the
// certificate that the file names, since it is asked by an address which that
// certificate need not hold.
func (c *healthcheckCommand) where() (string, *tls.Config, error) {
	if c.URL != "" {
		return c.URL, nil, nil
	}
	path, err := c.find()
	if errors.Is(err, errNoConfig) {
		return defaultProxy, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	src, err := config.Read(path)
	if err != nil {
		return "", nil, err
	}
	cfg, _ := config.Parse(src)
	if cfg == nil {
		return "", nil, fmt.Errorf("%s has mistakes (understudy check lists them)", path)
	}
	address := net.JoinHostPort(reachable(cfg.Server.Host), strconv.Itoa(cfg.Server.Port))
	if cfg.Server.TLSCert == "" {
		return "http://" + address, nil, nil
	}
	pinned, err := pin(cfg.Server.TLSCert)
	return "https://" + address, pinned, err
}

// reachable is the address to call for what listens on host: a process that listens
// on all addresses is reached on loopback.
func reachable(host string) string {
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if err == nil && ip.Is6() {
			return "::1"
		}
		return "127.0.0.1"
	}
	return host
}
