package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"understudy/internal/health"
)

// How long a connection may be silent before it is asked whether it is still there,
// how long it has to answer, and how soon the next one is tried.
const (
	silentFor = time.Second
	soonest   = 50 * time.Millisecond
	latest    = time.Second
)

// news is what the scripts publish, and what load.lua lists.
type news struct {
	News   string `json:"n"`
	Key    string `json:"k"`
	From   string `json:"from"`
	By     string `json:"by"`
	Left   int64  `json:"left"`   // ms
	Length int64  `json:"length"` // ms
	Age    int64  `json:"age"`    // ms
	Why    string `json:"why"`
	Rev    string `json:"rev"`
	// Of load.lua only:
	Trial    string `json:"trial"`
	TrialRev string `json:"trialrev"`
}

// heard is the latest that was told of a key: pub/sub loses messages, and what is
// read in between may be newer than a message that is still under way.
type heard struct {
	rev, trial int64
	by         string // whose trial it is; "" = nobody's
}

// A listener is one Watch.
type listener struct {
	*Store
	told  func(health.Change)
	heard map[string]heard
}

// Watch implements health.Store.
func (s *Store) Watch(ctx context.Context, told func(health.Change)) {
	l := &listener{Store: s, told: told, heard: map[string]heard{}}
	pause := soonest
	for {
		began := time.Now()
		err := l.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		told(health.Change{News: health.Lost, Err: err})
		if time.Since(began) > latest {
			pause = soonest
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, latest)
	}
}

// errSilent is a connection that does not answer.
var errSilent = errors.New("store: the server does not answer")

// follow subscribes, reads everything, and tells what comes until the connection
// breaks.
func (l *listener) follow(ctx context.Context) error {
	sub := l.client.Subscribe(ctx)
	stop := context.AfterFunc(ctx, func() { sub.Close() }) // ends a reading under way
	defer func() {
		stop()
		sub.Close()
	}()
	call, cancel := context.WithTimeout(ctx, answerIn)
	err := sub.Subscribe(call, l.prefix+"news")
	cancel()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := sub.ReceiveTimeout(ctx, answerIn); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	messages, ended := make(chan string, 256), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go func() { ended <- receive(ctx, sub, messages, done) }() // ends with sub, or with done
	rescan := time.NewTicker(l.rescan)
	defer rescan.Stop()
	for {
		if err := l.load(ctx); err != nil {
			return err
		}
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-ended:
				return err
			case text := <-messages:
				l.message(text)
			case <-rescan.C:
				again = true
			case <-l.fresh:
				again = true
			}
		}
	}
}

// receive hands messages over until the connection breaks, or is silent and does not
// answer a ping either.
func receive(ctx context.Context, sub *redis.PubSub, messages chan<- string, done <-chan struct{}) error {
	asked := false
	for {
		m, err := sub.ReceiveTimeout(ctx, silentFor)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && !asked:
			if err := sub.Ping(ctx); err != nil {
				return fmt.Errorf("store: %w", err)
			}
			asked = true
			continue
		case errors.As(err, &timeout) && timeout.Timeout():
			return errSilent
		case err != nil:
			return fmt.Errorf("store: %w", err)
		}
		asked = false
		if m, ok := m.(*redis.Message); ok {
			select {
			case messages <- m.Payload:
			case <-done:
				return nil
			}
		}
	}
}

// load reads everything and tells what is new in it, and then that all is known.
func (l *listener) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	v, err := l.run(ctx, loadScript, maxFreezes)
	if err != nil {
		return err
	}
	lines, ok := texts(v)
	if !ok {
		return errAnswer
	}
	keys := make(map[health.Key]bool, len(lines))
	for _, line := range lines {
		var n news
		if json.Unmarshal([]byte(line), &n) != nil {
			continue // somebody else's
		}
		keys[health.Key(n.Key)] = true
		before, rev, trial := l.heard[n.Key], number(n.Rev), number(n.TrialRev)
		l.heard[n.Key] = heard{rev, trial, n.Trial}
		if rev != before.rev {
			l.tell(n)
		}
		if trial != before.trial && before.by != "" && before.by != n.Trial {
			l.tell(news{News: "tried", Key: n.Key, From: before.by}) // its message comes too late now
		}
		if trial != before.trial && n.Trial != "" {
			l.tell(news{News: "trying", Key: n.Key, From: n.Trial})
		}
	}
	for k := range l.heard {
		if !keys[health.Key(k)] {
			delete(l.heard, k)
		}
	}
	l.told(health.Change{News: health.Known, Keys: keys})
	return nil
}

// message takes what was published.
func (l *listener) message(text string) {
	var n news
	if json.Unmarshal([]byte(text), &n) != nil {
		return // somebody else's
	}
	h, rev := l.heard[n.Key], number(n.Rev)
	switch n.News {
	case "froze", "thawed":
		if rev <= h.rev {
			return
		}
		h = heard{rev: rev}
	case "trying", "tried":
		if rev <= h.trial {
			return
		}
		h.trial = rev
		switch {
		case n.News == "trying":
			h.by = n.From
		case h.by == n.From: // another one's, begun meanwhile, goes on
			h.by = ""
		}
	}
	if n.Key != "" {
		l.heard[n.Key] = h
	}
	l.tell(n)
}

// tell tells news, but for this instance's own that are no freezes and thaws.
func (l *listener) tell(n news) {
	if n.From == l.name && n.News != "froze" && n.News != "thawed" || n.Key == "" && n.News != "room" && n.News != "gone" {
		return
	}
	now := time.Now()
	at := now.Add(-ms(n.Age))
	c := health.Change{Key: health.Key(n.Key), From: n.From, At: at}
	if c.By.UnmarshalText([]byte(n.By)) != nil {
		c.By = health.Rule // one of a later version: nothing that a person did
	}
	switch n.News {
	case "froze":
		c.News = health.Froze
		c.Freeze = health.Freeze{Key: c.Key, Since: at, Until: now.Add(left(n.Left)), Length: ms(n.Length), By: c.By, Reason: n.Why, From: n.From}
	case "thawed":
		c.News = health.Thawed
	case "trying":
		c.News = health.Trying
	case "tried":
		c.News = health.Tried
	case "room":
		c.News = health.Room
	case "gone":
		c.News = health.Gone
	default:
		return
	}
	l.told(c)
}

// longest is the longest time that is believed: more than a person may ask for.
const longest = 20 * 365 * 24 * time.Hour

func ms(n int64) time.Duration {
	return time.Duration(min(max(n, 0), longest.Milliseconds())) * time.Millisecond
}

// left may be over already.
func left(n int64) time.Duration {
	if n < 0 {
		return -ms(-max(n, -longest.Milliseconds()))
	}
	return ms(n)
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number is older than all
	return n
}
