package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"understudy/internal/control"
)

// maxFile bounds the body of an edited file: a configuration is at most 1 MiB, and
// JSON may write two characters for one.
const maxFile = 4 << 20

// configFile shows the configuration file, its secrets masked. Its ETag is what an
// edit names.
func (h *Handler) configFile(w http.ResponseWriter, _ *http.Request) {
	f, err := h.control.ConfigFile()
	if err != nil {
		sendError(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("ETag", `"`+f.Hash+`"`)
	sendJSON(w, http.StatusOK, f)
}

// mistakes is the answer about a text that was looked at.
type mistakes struct {
	OK       bool                  `json:"ok"`
	Error    string                `json:"error,omitempty"`
	Problems []control.FileProblem `json:"problems"`
}

// checkConfig says what is wrong with an edited text. It writes nothing.
func (h *Handler) checkConfig(w http.ResponseWriter, r *http.Request) {
	hash, text, ok := edited(w, r)
	if !ok {
		return
	}
	problems, err := h.control.CheckConfig(hash, text)
	if err != nil {
		sendError(w, fileStatus(err), err.Error())
		return
	}
	answer := mistakes{OK: true, Problems: problems}
	for _, p := range problems {
		answer.OK = answer.OK && p.Severity != "error"
	}
	sendJSON(w, http.StatusOK, answer)
}

// writeConfig puts an edited text in the file's place and applies it.
func (h *Handler) writeConfig(w http.ResponseWriter, r *http.Request) {
	hash, text, ok := edited(w, r)
	if !ok {
		return
	}
	written, err := h.control.WriteConfig(r.Context(), "web", hash, text)
	if found, ok := errors.AsType[control.Mistakes](err); ok {
		sendJSON(w, http.StatusUnprocessableEntity, mistakes{Error: err.Error(), Problems: found})
		return
	}
	if err != nil {
		sendError(w, fileStatus(err), err.Error())
		return
	}
	w.Header().Set("ETag", `"`+written.Hash+`"`)
	sendJSON(w, http.StatusOK, struct {
		OK bool `json:"ok"`
		control.Written
	}{true, written})
}

func fileStatus(err error) int {
	if errors.Is(err, control.ErrFileChanged) {
		return http.StatusPreconditionFailed
	}
	return http.StatusUnprocessableEntity
}

// edited reads {"text": "..."} and the hash that If-Match names. Where it gives no
// text it has answered.
func edited(w http.ResponseWriter, r *http.Request) (hash, text string, ok bool) {
	var body struct {
		Text *string `json:"text"`
	}
	if !readJSON(w, r, maxFile, `an edit is {"text": "..."}`, &body, func() bool { return body.Text != nil }) {
		return "", "", false
	}
	hash = strings.Trim(strings.TrimPrefix(strings.TrimSpace(r.Header.Get("If-Match")), "W/"), `"`)
	if hash == "" || hash == "*" {
		sendError(w, http.StatusPreconditionRequired, "an edit says which file it edits: If-Match with the ETag of GET /api/config")
		return "", "", false
	}
	return hash, *body.Text, true
}

// readJSON reads a bounded JSON body of a change. usage says how it is meant. A form
// of another page can send anything but this type.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, usage string, into any, complete func() bool) bool {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		sendError(w, http.StatusUnsupportedMediaType, "a change is JSON: Content-Type: application/json")
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		sendError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d bytes", tooLarge.Limit))
		return false
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		sendError(w, http.StatusRequestTimeout, "the body did not come in time")
		return false
	}
	if err != nil {
		return false // the caller has left
	}
	if err := json.Unmarshal(body, into); err != nil || !complete() {
		sendError(w, http.StatusBadRequest, usage)
		return false
	}
	return true
}
