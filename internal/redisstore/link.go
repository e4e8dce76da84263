package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// A server says where one is, and who wants to speak to it.
type server struct {
	addr           string // host:port
	user, password string
	database       string      // "" = 0
	tls            *tls.Config // nil = without
}

// parseServer reads redis://[user][:password@]host[:port][/database], or rediss:// for
// TLS.
func parseServer(text string, roots *x509.CertPool) (*server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, fmt.Errorf("%w: write redis://user@host:6379/0 or rediss://…", ErrURL)
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "6379"
	}
	s := &server{addr: net.JoinHostPort(host, port), user: u.User.Username(), database: strings.Trim(u.Path, "/")}
	s.password, _ = u.User.Password()
	if strings.Trim(s.database, "0123456789") != "" {
		return nil, fmt.Errorf("%w: the database is a number: redis://user@host:6379/0", ErrURL)
	}
	if u.Scheme == "rediss" {
		s.tls = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	return s, nil
}

// A link is a connection to a server that takes its commands. Its methods are for one
// goroutine, but for Close.
type link struct {
	net.Conn
	replies *replyReader
}

// dial connects, shows who it is and chooses the database, within dialFor.
func (s *server) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	dialer := net.Dialer{}
	c, err := dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	if s.tls != nil {
		secure := tls.Client(c, s.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			c.Close()
			return nil, err
		}
		c = secure
	}
	l := &link{Conn: c, replies: newReplyReader(c)}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = s.greet(l)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return l, nil
}

// greet says what has to be said first.
func (s *server) greet(l *link) error {
	var first [][]any
	switch {
	case s.password != "" && s.user != "":
		first = append(first, []any{"AUTH", s.user, s.password})
	case s.password != "":
		first = append(first, []any{"AUTH", s.password})
	}
	if s.database != "" {
		first = append(first, []any{"SELECT", s.database})
	}
	for _, command := range first {
		if err := l.send(command...); err != nil {
			return err
		}
		v, err := l.receive(answerIn)
		if err != nil {
			return err
		}
		if r, ok := v.(refusal); ok {
			return r
		}
	}
	return nil
}

// send sends a command.
func (l *link) send(words ...any) error {
	return l.write(appendCommand(nil, words...))
}

func (l *link) write(command []byte) error {
	if err := l.SetWriteDeadline(time.Now().Add(answerIn)); err != nil {
		return err
	}
	_, err := l.Write(command)
	return err
}

// receive waits so long for a reply to begin, and then for its end.
func (l *link) receive(patience time.Duration) (any, error) {
	if err := l.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := l.replies.from.Peek(1); err != nil {
		return nil, err
	}
	if err := l.SetReadDeadline(time.Now().Add(answerIn)); err != nil {
		return nil, err
	}
	return l.replies.next()
}
