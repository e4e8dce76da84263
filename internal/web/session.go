package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
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
// a key of this process over the configured token. Nothing is stored, the cookie
// does not hold the token, and it is worthless once the token is another.
type session struct{ key [32]byte }

func newSession() *session {
	s := new(session)
	rand.Read(s.key[:]) // never fails
	return s
}

func (s *session) sign(expiry string, token [32]byte) string {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte(expiry + "\x00"))
	mac.Write(token[:])
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *session) value(token [32]byte, now time.Time) string {
	expiry := strconv.FormatInt(now.Add(sessionLength).Unix(), 10)
	return expiry + "." + s.sign(expiry, token)
}

// valid says whether a request carries a cookie of a login that still holds.
func (s *session) valid(r *http.Request, token [32]byte) bool {
	for _, c := range r.CookiesNamed(cookieName) {
		expiry, signature, ok := strings.Cut(c.Value, ".")
		if !ok || !hmac.Equal([]byte(signature), []byte(s.sign(expiry, token))) {
			continue
		}
		until, err := strconv.ParseInt(expiry, 10, 64)
		if err == nil && time.Now().Before(time.Unix(until, 0)) {
			return true
		}
	}
	return false
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

// logout takes the cookie back.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, h.session.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
