package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"understudy/internal/wire"
)

// alive answers GET /healthz, which needs no key and calls nobody, and a listed
// origin's preflight.
func (h *Handler) alive(w http.ResponseWriter, r *http.Request, s *Snapshot) bool {
	if s.preflight(w, r) {
		return true
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if path != "/healthz" || (r.Method != http.MethodGet && r.Method != http.MethodHead) || s.enter(w.Header(), r, s.identify(r)) != nil {
		return false
	}
	totals := h.ledger.Totals()
	sendJSON(w, map[string]any{"status": "ok", "virtual_models": len(s.Routes.Names()), "frozen_candidates": h.Frozen(),
		"total_requests": totals.Requests, "total_exhausted": totals.Exhausted})
	return true
}

// page answers the lists of models, in the shape of whoever asks. With a pool and
// no virtual models they are the upstreams' business.
func (h *Handler) page(w http.ResponseWriter, q *request, s *Snapshot) bool {
	if q.method != http.MethodGet && q.method != http.MethodHead || len(s.Routes.Names()) == 0 {
		return false
	}
	path := "/" + strings.Trim(q.path, "/") // as it would be joined
	names := s.namesFor(q.clientOf)
	anthropic := q.header.Get("Anthropic-Version") != ""
	w.Header().Set("X-Understudy-Request-Id", q.id)
	switch path {
	case "/v1/models":
		if anthropic {
			sendJSON(w, anthropicModels(names))
		} else {
			list := openAIModels(names)
			if strings.Contains("&"+q.query, "&client_version=") {
				// Codex (0.171) decodes a list of its own under this name, or logs
				// that it cannot; an empty one leaves it with what it knows.
				list["models"] = []any{}
			}
			sendJSON(w, list)
		}
		return true
	case "/v1beta/models", "/v1alpha/models":
		sendJSON(w, geminiModels(names))
		return true
	case "/api/tags":
		sendJSON(w, ollamaModels(names))
		return true
	}
	for _, name := range names {
		if name != strings.TrimSpace(q.endpoint.Model) || q.endpoint.Generation {
			continue
		}
		switch {
		case strings.HasPrefix(path, "/v1/models/") && anthropic:
			sendJSON(w, anthropicModel(name))
		case strings.HasPrefix(path, "/v1/models/"):
			sendJSON(w, openAIModel(name))
		case strings.HasPrefix(path, "/v1beta/models/"), strings.HasPrefix(path, "/v1alpha/models/"):
			sendJSON(w, geminiModel(name))
		default:
			continue
		}
		return true
	}
	return false
}

func openAIModel(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "understudy"}
}

func openAIModels(names []string) map[string]any {
	return map[string]any{"object": "list", "data": each(names, openAIModel)}
}

func anthropicModel(name string) map[string]any {
	return map[string]any{"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
}

func anthropicModels(names []string) map[string]any {
	out := map[string]any{"data": each(names, anthropicModel), "has_more": false, "first_id": nil, "last_id": nil}
	if len(names) > 0 {
		out["first_id"], out["last_id"] = names[0], names[len(names)-1]
	}
	return out
}

func geminiModel(name string) map[string]any {
	return map[string]any{"name": "models/" + name, "baseModelId": name, "version": "1", "displayName": name,
		"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent", "countTokens"}}
}

func geminiModels(names []string) map[string]any {
	return map[string]any{"models": each(names, geminiModel)}
}

func ollamaModels(names []string) map[string]any {
	return map[string]any{"models": each(names, func(name string) map[string]any {
		return map[string]any{"name": name, "model": name, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "",
			"details": map[string]any{"parent_model": "", "format": "", "family": "", "families": []string{}, "parameter_size": "", "quantization_level": ""}}
	})}
}

func each(names []string, shape func(string) map[string]any) []map[string]any {
	out := make([]map[string]any, 0, len(names))
	for _, name := range names {
		out = append(out, shape(name))
	}
	return out
}

// sendJSON answers 200 with a page of our own.
func sendJSON(w http.ResponseWriter, page map[string]any) {
	body, err := json.Marshal(page)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that has left cannot be told
}

// refuse answers a request that nobody is called for.
func (h *Handler) refuse(w http.ResponseWriter, q *request, a *answer) {
	h.ledger.Enter("")
	d := q.endpoint.Dialect
	if d == wire.OpenAI && q.header.Get("Anthropic-Version") != "" {
		d = wire.Anthropic
	}
	a.write(w, d, q.id, 0)
	h.reportRefusal(q, a)
}
