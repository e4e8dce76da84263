package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"time"

	"understudy/internal/archive"
	"understudy/internal/console"
	"understudy/internal/control"
	"understudy/internal/daemon"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

// errNoRequest is why nothing can be told of a request.
var errNoRequest = errors.New("no such request is kept")

// A past is the requests that are over: those of a running process, or of the
// archive that one has left.
type past struct {
	find   func(ctx context.Context, id string) (control.Request, error)
	bodies func(ctx context.Context, id string) ([]keptBody, error)
	// troubled calls visit with the requests in which some attempt failed, the newest
	// first.
	troubled func(ctx context.Context, visit func(*control.Request)) error
	close    func()
}

// keptBody is a body as the admin listener gives it.
type keptBody struct {
	Attempt int    `json:"attempt"`
	Size    int64  `json:"size"`
	Cut     bool   `json:"cut"`
	Text    string `json:"text"`
	Base64  []byte `json:"base64"`
}

// content is the body itself.
func (b *keptBody) content() []byte {
	if b.Base64 != nil {
		return b.Base64
	}
	return []byte(b.Text)
}

// askTime bounds the first question to a process that may not be there.
const askTime = 5 * time.Second

// past finds the requests that are over. Where no process answers they are read from
// the configuration's archive.
func (f *adminFlag) past(ctx context.Context) (*past, error) {
	admin, _, err := f.where()
	if err != nil && f.Admin != "" {
		return nil, err
	}
	if err == nil {
		first, cancel := context.WithTimeout(ctx, askTime)
		err = admin.Get(first, "/api/requests?limit=1", new(control.Requests))
		cancel()
	}
	if err == nil {
		return remotePast(admin), nil
	}
	if f.Admin != "" || errors.Is(err, console.ErrToken) {
		return nil, err
	}
	kept, offline := f.archived()
	if offline != nil {
		return nil, fmt.Errorf("%w; and no archive can be read instead: %w", err, offline)
	}
	return kept, nil
}

// remotePast asks an admin listener.
func remotePast(admin console.Admin) *past {
	const page = 200
	return &past{
		find: func(ctx context.Context, id string) (r control.Request, err error) {
			return r, missing(admin.Get(ctx, "/api/requests/"+url.PathEscape(id), &r))
		},
		bodies: func(ctx context.Context, id string) ([]keptBody, error) {
			var answer struct {
				Bodies []keptBody `json:"bodies"`
			}
			return answer.Bodies, missing(admin.Get(ctx, "/api/requests/"+url.PathEscape(id)+"/bodies", &answer))
		},
		troubled: func(ctx context.Context, visit func(*control.Request)) error {
			for before := ""; ; {
				var answer control.Requests
				path := fmt.Sprintf("/api/requests?troubled=true&trail=true&limit=%d&before=%s", page, url.QueryEscape(before))
				if err := admin.Get(ctx, path, &answer); err != nil {
					return err
				}
				for i := range answer.Requests {
					visit(&answer.Requests[i])
				}
				if answer.Problem != "" {
					return errors.New(answer.Problem)
				}
				if len(answer.Requests) < page {
					return nil
				}
				before = answer.Requests[page-1].ID
			}
		},
		close: func() {},
	}
}

// missing tells a request that is not kept from what went wrong.
func missing(err error) error {
	if r, ok := errors.AsType[*console.Refusal](err); ok && r.Status == http.StatusNotFound {
		return errNoRequest
	}
	return err
}

// archived reads the archive of the configuration.
func (f *adminFlag) archived() (*past, error) {
	path, err := f.find()
	if err != nil {
		return nil, err
	}
	snap, _, _, err := daemon.Load(path)
	if err != nil {
		return nil, err
	}
	file := daemon.ArchivePath(snap.Config.Server.StateDir, path)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is none at %s", file)
	}
	return archivePast(snap, archive.NewReader(file, snap.Config.RequestLog.Keep)), nil
}

func archivePast(snap *proxy.Snapshot, r *archive.Reader) *past {
	unknown := func(err error) error {
		if errors.Is(err, archive.ErrUnknown) {
			return errNoRequest
		}
		return err
	}
	return &past{
		find: func(ctx context.Context, id string) (control.Request, error) {
			record, err := r.Find(ctx, id)
			if err != nil {
				return control.Request{}, unknown(err)
			}
			return control.Describe(snap, &record), nil
		},
		bodies: func(ctx context.Context, id string) (list []keptBody, err error) {
			kept, err := r.Bodies(ctx, id)
			for _, b := range kept {
				list = append(list, keptBody{Attempt: b.Try + 1, Size: b.Size, Cut: b.Cut, Text: snap.Redact.Hide(string(b.Text))})
			}
			return list, unknown(err)
		},
		troubled: func(ctx context.Context, visit func(*control.Request)) error {
			return r.Walk(ctx, archive.Selection{Troubled: true}, func(record *stats.Record) bool {
				one := control.Describe(snap, record)
				visit(&one)
				return true
			})
		},
		close: r.Close,
	}
}
