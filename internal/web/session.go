package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	cookieName = "understudy_admin"
	// sessionLength is how long a login lasts; a restart ends it sooner.
	sessionLength = 7 * 24 * time.Hour
	// maxLogin bounds the body of a login form.
	maxLogin = 8 << 10
)

// A session is what a login is worth: a cookie that says when it ends, signed with
// a key of this process over the configured token. Only logouts are stored; the cookie
// does not hold the token, and it is worthless once the token is another.
type session struct {
	mu    sync.Mutex
	key   [32]byte
	ended map[string]time.Time // signatures of cookies that were given back, and when they end anyway
}

// maxEnded bounds how many logouts are remembered. One more ends every login.
const maxEnded = 1000

func newSession() *session {
	s := &session{ended: map[string]time.Time{}}
	rand.Read(s.key[:]) // never fails
	return s
}

// sign signs what a cookie says. The lock is held.
func (s *session) sign(says string, token [32]byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte(says + "\x00"))
	mac.Write(token[:])
	return hex.EncodeToString(mac.Sum(nil))
}

// value is a new login's cookie: when it ends, something that no other login has, and
// the signature.
func (s *session) value(token [32]byte, now time.Time) string {
	says := strconv.FormatInt(now.Add(sessionLength).Unix(), 10) + "-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	return says + "." + s.sign(says, token)
}

// read says until when a cookie's login holds; ok is false where it is none of ours. The
// lock is held.
func (s *session) read(value string, token [32]byte) (signature string, until time.Time, ok bool) {
	says, signature, ok := strings.Cut(value, ".")
	if !ok || !hmac.Equal([]byte(signature), []byte(s.sign(says, token))) {
		return "", until, false
	}
	expiry, _, _ := strings.Cut(says, "-")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	return signature, time.Unix(seconds, 0), err == nil
}

// valid says whether a request carries a cookie of a login that still holds.
func (s *session) valid(r *http.Request, token [32]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName) {
		signature, until, ok := s.read(c.Value, token)
		if _, over := s.ended[signature]; ok && !over && time.Now().Before(until) {
			return true
		}
	}
	return false
}

// end ends the login of a request's cookie, whoever else has it.
func (s *session) end(r *http.Request, token [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, c := range r.CookiesNamed(cookieName) {
		signature, until, ok := s.read(c.Value, token)
		if !ok || !now.Before(until) {
			continue
		}
		maps.DeleteFunc(s.ended, func(_ string, until time.Time) bool { return !now.Before(until) })
		if s.ended[signature] = until; len(s.ended) > maxEnded {
			rand.Read(s.key[:])
			clear(s.ended)
		}
	}
}

func (s *session) cookie(r *http.Request, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(age / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

func (h *Handler) loginPage(w http.ResponseWriter, r *http.Request) {
	if !h.control.Access().NeedsToken() {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	render(w, http.StatusOK, loginTemplate(), "")
}

// login takes the token from the page's form. It changes nothing but the caller's
// own cookie, so that a form may do it; the guard has seen that the form is ours.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	access := h.control.Access()
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	if err := r.ParseForm(); errors.Is(err, os.ErrDeadlineExceeded) {
		sendError(w, http.StatusRequestTimeout, "the body did not come in time")
		return
	} else if err != nil {
		sendError(w, http.StatusBadRequest, "the form cannot be read")
		return
	}
	if access.NeedsToken() && !access.Token(strings.TrimSpace(r.PostForm.Get("token"))) {
		h.log.Warn("admin login refused", slog.String("from", r.RemoteAddr))
		render(w, http.StatusUnauthorized, loginTemplate(), "This is not the admin token.")
		return
	}
	if access.NeedsToken() {
		http.SetCookie(w, h.session.cookie(r, h.session.value(access.Digest(), time.Now()), sessionLength))
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout takes the cookie back, and ends the login that it stands for.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.session.end(r, h.control.Access().Digest())
	http.SetCookie(w, h.session.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
