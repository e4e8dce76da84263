package control

import (
	"context"
	"errors"
	"math"
	"time"

	"understudy/internal/stats"
)

// Archive is the request log on disk, as it is read from here: it has what the
// journal has no longer, and what was before a restart. Where there is none all are
// nil.
type Archive struct {
	// Status says how it is doing.
	Status func() ArchiveStatus
	// Find gives the record of a request id; false where none is kept.
	Find func(ctx context.Context, id string) (stats.Record, bool, error)
	// Walk calls visit with the records that are selected, the newest first, until it
	// says false; it is false itself where Selection.Before is not kept.
	Walk func(ctx context.Context, s Selection, visit func(*stats.Record) bool) (bool, error)
	// Bodies gives those of a request that are kept.
	Bodies func(ctx context.Context, id string) ([]KeptBody, error)
}

// Selection says which records are walked along; the zero one is all.
type Selection struct {
	Before   string // the id of a record: only older ones
	Failed   *bool  // as in Query
	Troubled bool   // only those in which some attempt failed by a rule's judgement
}

// KeptBody is a body that the request log keeps, without secrets.
type KeptBody struct {
	Attempt int   // from 1 by the order of the attempts; 0 is the request's own
	Size    int64 // of the whole body, as it came
	Cut     bool  // Text is not all of it
	Text    []byte
}

// ArchiveStatus is how the request log on disk is doing.
type ArchiveStatus struct {
	// State is ready, waiting (it cannot be written now and is tried again) or ended
	// (another process writes it); "" where there is none.
	State string `json:"state"`
	// Problem says what is wrong, "" = nothing, and Since since when.
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since"`
	// SetAside is where a damaged file was moved; "" = none was.
	SetAside string `json:"set_aside"`
	// Entries are the requests on disk, Written those of this process, Dropped those
	// that could not be written, and BodiesDropped those without the bodies that were
	// to be kept.
	Entries       int64 `json:"entries"`
	Written       int64 `json:"written"`
	Dropped       int64 `json:"dropped"`
	BodiesDropped int64 `json:"bodies_dropped"`
}

// archiveTime bounds one reading of the request log.
const archiveTime = 10 * time.Second

// archive is the status as people may see it.
func (b *builder) archive() ArchiveStatus {
	if b.c.deps.Archive.Status == nil {
		return ArchiveStatus{}
	}
	s := b.c.deps.Archive.Status()
	s.Problem, s.SetAside = b.prose(s.Problem), b.name(s.SetAside)
	return s
}

// errNoRequest is why there is nothing to say about a request.
var errNoRequest = errors.New("no such request, or it is no longer kept")

// record finds a request: in the journal while it is there, then on disk.
func (c *Control) record(id string) (stats.Record, error) {
	if r, ok := c.deps.Handler.Ledger().Find(id); ok {
		return r, nil
	}
	if c.deps.Archive.Find == nil {
		return stats.Record{}, errNoRequest
	}
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime)
	defer cancel()
	r, ok, err := c.deps.Archive.Find(ctx, id)
	if err == nil && !ok {
		err = errNoRequest
	}
	return r, err
}

// older calls visit with the records on disk that the journal has no longer.
func (c *Control) older(s Selection, visit func(*stats.Record) bool) error {
	if c.deps.Archive.Walk == nil {
		return nil
	}
	fresh := map[string]bool{}
	for _, r := range c.deps.Handler.Ledger().Latest(math.MaxInt, nil) {
		fresh[r.ID] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime)
	defer cancel()
	_, err := c.deps.Archive.Walk(ctx, s, func(r *stats.Record) bool {
		return fresh[r.ID] || visit(r)
	})
	return err
}

// Bodies gives the bodies that are kept of a request: none where none are.
func (c *Control) Bodies(id string) ([]KeptBody, error) {
	if c.deps.Archive.Bodies == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime)
	defer cancel()
	bodies, err := c.deps.Archive.Bodies(ctx, id)
	redact := c.deps.Handler.Snapshot().Redact
	for i := range bodies {
		// A key that was not known then may be known now.
		bodies[i].Text = []byte(redact.Hide(string(bodies[i].Text)))
	}
	return bodies, err
}
