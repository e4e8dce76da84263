package proxy

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"understudy/internal/owner"
	"understudy/internal/route"
	"understudy/internal/wire"
)

// Some state lives in one account and means nothing elsewhere. The identifiers of
// hard state bind a request to the account that gave them; soft state is taken
// elsewhere too where the vendor is the same, so its owner only goes first.

// stateFields are the members of a request that carry identifiers, by the endpoint's
// kind: at the top level, and at any depth. Large bodies are looked through once per
// name of the latter, so each kind has only its own.
type stateFields struct {
	top, deep, soft []string
}

var fieldsOf = map[wire.Kind]stateFields{
	wire.Responses: {[]string{"previous_response_id", "conversation"}, []string{"file_id", "container", "vector_store_ids"}, []string{"encrypted_content"}},
	wire.Messages:  {[]string{"container"}, []string{"file_id"}, []string{"signature"}},
	wire.Generate:  {[]string{"cachedContent", "cached_content"}, []string{"fileUri", "file_uri"}, []string{"thoughtSignature", "thought_signature"}},
	wire.Chat:      {nil, []string{"file_id"}, nil},
	// What makes and changes state itself: batches, vector stores, fine-tuning.
	wire.Other: {nil, []string{"previous_response_id", "conversation", "file_id", "file_ids", "input_file_id", "training_file", "validation_file", "container",
		"container_id", "vector_store_id", "vector_store_ids", "batch_id", "upload_id", "cachedContent", "fileUri"}, nil},
}

// softHeader is Codex's sticky routing token: replayed within a turn, it belongs
// to the account that answered with it.
const softHeader = "X-Codex-Turn-State"

// statePaths are the path segments behind which an identifier of hard state
// stands, or which give one out.
var statePaths = []string{"responses", "conversations", "files", "batches", "containers", "vector_stores", "uploads", "cachedContents", "threads", "assistants", "jobs", "videos", "evals"}

// claim is the owner that a request must or should go to.
type claim struct {
	owner owner.Owner
	hard  bool
}

// claims finds the owners of the identifiers a request carries, hard ones first.
func (h *Handler) claims(q *request) (found []claim) {
	if h.owners.Len() == 0 {
		return nil
	}
	now := time.Now()
	look := func(id string, hard bool) {
		if o, ok := h.owners.Owner(q.client, id, now); ok {
			found = append(found, claim{o, hard})
		}
	}
	for _, id := range pathIDs(q.path) {
		look(id, true)
	}
	if fields, ok := fieldsOf[q.endpoint.Kind]; ok && q.doc != nil && q.doc.IsObject() {
		for _, name := range fields.top {
			if value, ok := q.doc.Raw(name); ok {
				eachOf(value, func(id string) { look(id, true) })
			}
		}
		for _, name := range fields.deep {
			eachText(q.body, name, func(id string) { look(id, true) })
		}
		for _, name := range fields.soft {
			eachText(q.body, name, func(id string) { look(id, false) })
		}
	}
	look(field(q.header, softHeader), false)
	return found
}

// pathIDs are the identifiers in a path: what stands behind a segment of statePaths.
func pathIDs(path string) (ids []string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := 1; i < len(segments); i++ {
		for _, name := range statePaths {
			if segments[i-1] != name {
				continue
			}
			id := segments[i]
			if plain, err := url.PathUnescape(id); err == nil {
				id = plain
			}
			id, _, _ = strings.Cut(id, ":")
			ids = append(ids, id)
			if name == "files" || name == "cachedContents" {
				ids = append(ids, name+"/"+id) // Gemini's names
			}
		}
	}
	return ids
}

// eachText calls found with every text that stands behind a member of that name,
// at any depth: its value, its value's `id`, or the texts of its list. The name is
// looked for in the raw bytes; inside a text its quotes would be escaped. What is
// found is only looked up, so that a mistake finds nothing.
func eachText(body []byte, name string, found func(string)) {
	quoted := []byte(`"` + name + `"`)
	for {
		i := bytes.Index(body, quoted)
		if i < 0 {
			return
		}
		body = body[i+len(quoted):]
		rest := bytes.TrimLeft(body, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		eachOf(rest[1:min(len(rest), valueLimit)], found)
	}
}

// eachOf calls found with the texts that a value holds: itself, its `id`, or its
// elements. What stands behind the value does not matter.
func eachOf(raw []byte, found func(string)) {
	value := gjson.ParseBytes(raw)
	switch {
	case value.Type == gjson.String:
		found(value.String())
	case value.IsObject():
		found(value.Get("id").String())
	case value.IsArray():
		for _, element := range value.Array() {
			if element.Type == gjson.String {
				found(element.String())
			}
		}
	}
}

// valueLimit is how much of a value is looked at.
const valueLimit = 64 << 10

// A learner notes the identifiers in one attempt's answer. They count only once
// the answer has been released: what nobody saw nobody asks for.
type learner struct {
	book    *owner.Book
	client  string
	owner   owner.Owner
	waiting []string
	count   bool
}

// learn begins to note identifiers where an answer may hold some; nil elsewhere.
func (r *run) learn(c *route.Candidate) *learner {
	if r.s.Config.Server.Ownership == "off" {
		return nil
	}
	switch r.req.endpoint.Kind {
	case wire.Responses, wire.Messages, wire.Generate:
	default:
		if !givesState(r.req.path) {
			return nil
		}
	}
	return &learner{book: r.h.owners, client: r.req.client, owner: owner.Owner{Identity: string(c.ID), Model: r.chain.Model, At: r.req.start}}
}

// givesState says whether a path is one of those whose answers name hard state,
// and no file's content.
func givesState(path string) bool {
	path = strings.Trim(path, "/")
	if path == "content" || strings.HasSuffix(path, "/content") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if slices.Contains(statePaths, segment) {
			return true
		}
	}
	return false
}

// note takes an identifier.
func (l *learner) note(id string) {
	switch {
	case id == "":
	case l.count:
		l.book.Learn(l.client, id, l.owner)
	default:
		l.waiting = append(l.waiting, id)
	}
}

// released lets what was noted count, and the answer's own header.
func (l *learner) released(header http.Header) {
	if l == nil {
		return
	}
	l.count = true
	for _, id := range l.waiting {
		l.note(id)
	}
	l.waiting = nil
	l.note(field(header, softHeader))
}

// answerFields are the members of an answer, at any depth, whose text names state
// of the account.
var answerFields = [][]byte{
	[]byte(`"encrypted_content"`), []byte(`"signature"`), []byte(`"thoughtSignature"`), []byte(`"container_id"`), []byte(`"container"`), []byte(`"conversation"`),
	[]byte(`"file_id"`), []byte(`"output_file_id"`), []byte(`"error_file_id"`), []byte(`"uri"`),
}

// seen is called with every event and document of the answer.
func (l *learner) seen(data []byte) {
	for _, quoted := range answerFields {
		if bytes.Contains(data, quoted) {
			eachText(data, string(quoted[1:len(quoted)-1]), l.note)
		}
	}
	// The thing itself: a stored response, within its events or as the document,
	// an upload, a batch, a cache.
	if bytes.Contains(data, []byte(`"response.created"`)) || bytes.Contains(data, []byte(`"response.completed"`)) {
		l.note(gjson.GetBytes(data, "response.id").String())
		return
	}
	if len(data) > 0 && data[0] == '{' && !bytes.Contains(data, []byte(`"type":"`)) || bytes.Contains(data, []byte(`"object"`)) {
		top := gjson.ParseBytes(data)
		if kind := top.Get("object").String(); kind == "chat.completion" || kind == "chat.completion.chunk" || kind == "text_completion" || kind == "list" {
			return
		}
		l.note(top.Get("id").String())
		l.note(top.Get("name").String())
		l.note(top.Get("file.name").String())
		l.note(top.Get("response.id").String())
	}
}

// bind puts the owner of what the request carries where it belongs in the plan. A
// refusal says that the owner cannot be asked now.
func (r *run) bind(plan *route.Plan) *answer {
	mode := r.s.Config.Server.Ownership
	if mode == "off" {
		return nil
	}
	for _, c := range r.h.claims(r.req) {
		if !c.hard {
			ownerFirst(plan, c.owner.Identity, false)
			continue
		}
		in := r.holds(c.owner.Identity)
		if !in && c.owner.Model != r.chain.Model {
			continue // owners count only inside the request's own chain or pool
		}
		if mode == "prefer" {
			ownerFirst(plan, c.owner.Identity, true)
			continue
		}
		for _, step := range plan.Steps {
			if string(step.Candidate.ID) == c.owner.Identity {
				plan.Steps = []route.Step{step}
				return nil
			}
		}
		return r.ownerAway(c.owner, in)
	}
	return nil
}

// holds says whether an identity is in the chain.
func (r *run) holds(identity string) bool {
	for _, tier := range r.chain.Tiers {
		for i := range tier {
			if string(tier[i].ID) == identity {
				return true
			}
		}
	}
	return false
}

// ownerAway is the answer when the owner is frozen or gone.
func (r *run) ownerAway(o owner.Owner, in bool) *answer {
	a := &answer{status: http.StatusConflict, kind: "invalid_request_error", code: "owner_unavailable", model: r.chain.Model,
		message: "the request refers to state of an account that is not in the configuration any more"}
	if in {
		for _, tier := range r.chain.Tiers {
			for i := range tier {
				if c := &tier[i]; string(c.ID) == o.Identity {
					why, _ := r.reason(c.ID)
					a.message = "the request refers to state that lives in the account of '" + r.redact.Quote(c.Name, 200) + "', which cannot be asked now"
					if why != "" {
						a.message += ": " + why
					} else if !c.Enabled {
						a.message += ": it is disabled"
					}
					a.retry = r.thaw(c.ID)
				}
			}
		}
	}
	return a
}

// ownerFirst moves a plan's step to the front: of the whole plan, or of its tier.
func ownerFirst(plan *route.Plan, identity string, whole bool) {
	for i, step := range plan.Steps {
		if string(step.Candidate.ID) != identity {
			continue
		}
		first := i
		for first > 0 && (whole || plan.Steps[first-1].Tier == step.Tier) {
			first--
		}
		copy(plan.Steps[first+1:i+1], plan.Steps[first:i])
		plan.Steps[first] = step
		return
	}
}

// ownerModel is the virtual model of the owner of an identifier that a request
// without a model carries; "" where none is known.
func (h *Handler) ownerModel(q *request, s *Snapshot) string {
	if s.Config.Server.Ownership == "off" {
		return ""
	}
	for _, c := range h.claims(q) {
		if c.hard && c.owner.Model != route.PoolName {
			return c.owner.Model
		}
	}
	return ""
}
