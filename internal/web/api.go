package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"understudy/internal/control"
)

// maxCommand bounds the body of a command.
const maxCommand = 256 << 10

// defaultRequests is how many requests are listed where nobody says how many.
const defaultRequests = 100

func (h *Handler) state(w http.ResponseWriter, _ *http.Request) {
	if h.control.Access().NeedsToken() {
		w.Header().Set("X-Understudy-Login", "1") // the page offers a way out
	}
	sendJSON(w, http.StatusOK, h.control.View())
}

func (h *Handler) requests(w http.ResponseWriter, r *http.Request) {
	q, err := query(r)
	if err != nil {
		sendError(w, http.StatusBadRequest, err.Error())
		return
	}
	sendJSON(w, http.StatusOK, h.control.Requests(q))
}

// query reads limit, model, failed, troubled, trail, before and after.
func query(r *http.Request) (q control.Query, err error) {
	form := r.URL.Query()
	q.Limit, q.Model = defaultRequests, form.Get("model")
	if text := form.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > control.MaxRequests {
			return q, fmt.Errorf("limit is a number from 1 to %d", control.MaxRequests)
		}
	}
	if text := form.Get("failed"); text != "" {
		failed, err := strconv.ParseBool(text)
		if err != nil {
			return q, errors.New("failed is true or false")
		}
		q.Failed = &failed
	}
	for name, to := range map[string]*bool{"troubled": &q.Troubled, "trail": &q.Trail} {
		if text := form.Get(name); text != "" {
			if *to, err = strconv.ParseBool(text); err != nil {
				return q, errors.New(name + " is true or false")
			}
		}
	}
	q.Before = form.Get("before")
	if text := form.Get("after"); text != "" {
		if q.After, err = strconv.ParseUint(text, 10, 64); err != nil {
			return q, errors.New("after is a sequence number")
		}
	}
	return q, nil
}

func (h *Handler) request(w http.ResponseWriter, r *http.Request) {
	found, ok := h.control.Request(r.PathValue("id"))
	if !ok {
		sendError(w, http.StatusNotFound, "no such request, or it is no longer kept")
		return
	}
	sendJSON(w, http.StatusOK, found)
}

// spans are the lengths of time that curves are drawn for.
var spans = map[string]time.Duration{"10m": 10 * time.Minute, "1h": time.Hour, "6h": 6 * time.Hour, "24h": 24 * time.Hour}

// curves gives what happened over time, of one virtual model or of all.
func (h *Handler) curves(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	length, ok := spans[cmp.Or(form.Get("span"), "1h")]
	if !ok {
		sendError(w, http.StatusBadRequest, "span is 10m, 1h, 6h or 24h")
		return
	}
	found, ok := h.control.Curves(form.Get("model"), length)
	if !ok {
		sendError(w, http.StatusNotFound, "no such virtual model")
		return
	}
	sendJSON(w, http.StatusOK, found)
}

// done is the answer to a command that ran.
type done struct {
	OK     bool   `json:"ok"`
	Output string `json:"output"`
	// Quit says that the command ends the console that sent it. Nothing ends here.
	Quit bool `json:"quit,omitempty"`
}

func (h *Handler) command(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Line *string `json:"line"`
	}
	if !readJSON(w, r, maxCommand, `a command is {"line": "help"}`, &asked, func() bool { return asked.Line != nil }) {
		return
	}
	out, err := h.control.Run(r.Context(), "web", *asked.Line)
	if err != nil {
		sendError(w, http.StatusBadRequest, err.Error())
		return
	}
	sendJSON(w, http.StatusOK, done{OK: true, Output: out.Text, Quit: out.Quit})
}

// failure is the answer to whatever could not be done.
type failure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

func sendError(w http.ResponseWriter, status int, text string) {
	sendJSON(w, status, failure{Error: text})
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Only a value that is no number in JSON can do that, and a View has none.
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has left cannot be told
}
