package web

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"understudy/internal/control"
)

// body is a body that the request log keeps. Text or Base64 holds it, whichever can.
type body struct {
	Attempt int    `json:"attempt"` // from 1; 0 is the request's own
	Size    int64  `json:"size"`    // of the whole body
	Cut     bool   `json:"cut"`     // it is not kept whole
	Text    string `json:"text,omitempty"`
	Base64  []byte `json:"base64,omitempty"`
}

// bodies gives the bodies that are kept of a request.
func (h *Handler) bodies(w http.ResponseWriter, r *http.Request) {
	kept, err := h.control.Bodies(r.PathValue("id"))
	if err != nil {
		sendError(w, http.StatusInternalServerError, err.Error())
		return
	}
	if len(kept) == 0 {
		sendError(w, http.StatusNotFound, "no bodies are kept of such a request: request_log.bodies says whose are")
		return
	}
	list := make([]body, 0, len(kept))
	for _, k := range kept {
		b := body{Attempt: k.Attempt, Size: k.Size, Cut: k.Cut}
		if utf8.Valid(k.Text) {
			b.Text = string(k.Text)
		} else {
			b.Base64 = k.Text
		}
		list = append(list, b)
	}
	sendJSON(w, http.StatusOK, map[string]any{"bodies": list})
}

// route gives the plan that a session's request would get now.
func (h *Handler) route(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	p, err := h.control.Route(form.Get("model"), form.Get("session_id"))
	if errors.Is(err, control.ErrNoModel) {
		sendError(w, http.StatusNotFound, err.Error())
		return
	}
	if err != nil {
		sendError(w, http.StatusInternalServerError, err.Error())
		return
	}
	sendJSON(w, http.StatusOK, p)
}
