package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy/internal/control"
)

// maxAnswer bounds an answer of the admin listener, in bytes.
const maxAnswer = 64 << 20

// answerTime is how long the admin listener may take to answer.
const answerTime = 60 * time.Second

// ErrToken says that the admin listener wants a token, or another one.
var ErrToken = errors.New("the admin token is missing or wrong: give it as UNDERSTUDY_ADMIN_TOKEN or --token")

// Admin is an admin listener and how to be let in.
type Admin struct {
	Address string      // such as "http://127.0.0.1:8788" or "127.0.0.1:8788"
	Token   string      // may be empty
	TLS     *tls.Config // how to know it where the address is https; nil: by the system's authorities
}

// Source is the process behind an admin listener. Nothing is asked yet.
func (a Admin) Source() (Source, error) {
	r, err := newRemote(a)
	if err != nil {
		return Source{}, err
	}
	return Source{Run: r.run, View: r.view}, nil
}

// Get asks an admin listener for what stands behind a path, such as
// "/api/requests?limit=3". A refusal is a *Refusal; where nobody listens the error
// wraps a *net.OpError.
func (a Admin) Get(ctx context.Context, path string, answer any) error {
	r, err := newRemote(a)
	if err != nil {
		return err
	}
	defer r.client.CloseIdleConnections()
	return r.call(ctx, http.MethodGet, path, nil, answer)
}

// Refusal is an error that the admin listener answered with.
type Refusal struct {
	Status int // of HTTP
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

func newRemote(a Admin) (*remote, error) {
	base, err := adminURL(a.Address)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = a.TLS
	return &remote{base: base, token: a.Token, client: &http.Client{
		Transport: transport,
		Timeout:   answerTime,
		// Who redirects is no admin listener, and must not get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// adminURL completes an address; an unspecified host is this machine.
func adminURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("the admin address is http://host:port, not '%s'", clean(control.Masked(address)))
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "" || ip != nil && ip.IsUnspecified() {
		host := "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
		u.Host = net.JoinHostPort(host, u.Port())
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// A remote is an admin listener.
type remote struct {
	base, token string
	client      *http.Client
}

func (r *remote) view(ctx context.Context) (v control.View, err error) {
	err = r.call(ctx, http.MethodGet, "/api/state", nil, &v)
	return v, err
}

func (r *remote) run(ctx context.Context, line string) (control.Output, error) {
	var answer struct {
		OK     *bool  `json:"ok"`
		Output string `json:"output"`
		Quit   bool   `json:"quit"`
	}
	if err := r.call(ctx, http.MethodPost, "/api/command", map[string]string{"line": line}, &answer); err != nil {
		return control.Output{}, err
	}
	if answer.OK == nil {
		return control.Output{}, r.notOurs()
	}
	return control.Output{Text: answer.Output, Quit: answer.Quit}, nil
}

// ErrNotOurs is wrapped where something else answers at the address.
var ErrNotOurs = errors.New("no admin listener of understudy")

func (r *remote) notOurs() error {
	return fmt.Errorf("what answers at %s is %w: name that with --admin", r.base, ErrNotOurs)
}

// call asks for one thing. An error of the command is the listener's own text.
func (r *remote) call(ctx context.Context, method, path string, question, answer any) error {
	var body io.Reader
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return fmt.Errorf("encode the command: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", r.base, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return r.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return r.unreachable(ctx, err)
	}
	var failure struct {
		Error string `json:"error"`
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return ErrToken
	case resp.StatusCode != http.StatusOK:
		if json.Unmarshal(text, &failure) != nil || failure.Error == "" {
			return r.notOurs()
		}
		return &Refusal{resp.StatusCode, failure.Error}
	case json.Unmarshal(text, answer) != nil:
		return r.notOurs()
	}
	return nil
}

// unreachable says in a person's words that nobody answered.
func (r *remote) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("broken off; what was sent may still be carried out")
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Errorf("%s does not answer in time", r.base)
	}
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err // without the address, which stands there already
	}
	return fmt.Errorf("nobody answers at %s (is understudy running? another address: --admin): %w", r.base, cause)
}
