package drill

import (
	"bytes"
	"slices"
	"sync"
)

// Fault is one way for an upstream to fail, or to look as if it did.
type Fault struct {
	Name string // for command lines: lower case, digits and hyphens
	Says string // what the upstream does, for people

	// AfterRelease says that a stream fails only when enough of the answer is out
	// for a proxy to have passed it on. Answers that are no stream are never so far.
	AfterRelease bool
	// Healthy says that the answer is whole and right for all its oddity, and is to
	// be passed on.
	Healthy bool

	// Script returns the fault as it looks in place of the given answer. The script
	// is in the dialect of each request it gets.
	Script func(Answer) Script

	only func(form) bool // the requests it applies to, nil meaning all
}

// Applies reports whether the fault shows in the answer to r. Where it does not,
// the script answers as a healthy upstream would.
func (f Fault) Applies(r Request) bool { return f.only == nil || f.only(formOf(r)) }

// Faults is the catalogue, which belongs to this package. It is made when it is first
// asked for: a program that serves never does.
func Faults() []Fault { return faults() }

var faults = sync.OnceValue(func() []Fault {
	return slices.Concat(statusFaults(), bodyFaults(), emptyFaults(), timingFaults(), connectionFaults(), lateFaults(), codingFaults(), oddities())
})

// Find returns the fault of that name.
func Find(name string) (Fault, bool) {
	i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return Faults()[i], true
}

// ByModel plays the fault whose name the request gives as its model, and answers
// healthily where there is none of that name.
func ByModel(a Answer) Script {
	return func(w *Wire, r Request, n int) {
		script := Healthy(a)
		if f, ok := Find(r.Model()); ok {
			script = f.Script(a)
		}
		script(w, r, n)
	}
}

// CutAt returns a script maker that sends the healthy answer's body up to byte n
// and stops there in the given way. A negative n counts from the end. The head of a
// stream is chunked, and so is that of any other answer where the end is to be
// clean; else that one announces its whole length.
func CutAt(n int, how Ending) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, _ int) {
			p := a.play(formOf(r))
			frames := p.frames()
			total := len(bytes.Join(frames, nil))
			end := n
			if n < 0 {
				end = max(0, total+n)
			}
			if p.format == whole && how != Clean {
				w.Head(200, Length(total), append([]string{"Content-Type", p.contentType}, p.header...)...)
			} else {
				p.begin(w)
			}
			for i, f := range frames {
				if i > 0 && a.Gap > 0 && !w.Pause(a.Gap) {
					return
				}
				if len(f) >= end {
					w.Chunk(f[:end])
					break
				}
				w.Chunk(f)
				end -= len(f)
			}
			w.Stop(how)
		}
	}
}

// staged returns a fault that begins the answer and then does something else. For a
// stream, before and content say how many events of those kinds are sent, all where
// negative, and then is called with the number of events sent. For an answer that
// is no stream a head that announces all of it and its first half are sent.
func staged(before, content int, then func(s *stage)) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			f := formOf(r)
			a := a.complete(f)
			s := &stage{Wire: w, play: a.play(f), form: f, answer: a}
			if s.format == whole {
				s.Head(200, Length(len(s.body)), append([]string{"Content-Type", s.contentType}, s.header...)...)
				if before != 0 || content != 0 {
					s.Chunk(s.body[:len(s.body)/2])
				}
			} else {
				s.begin(w)
				s.say(first(s.lead, before)...)
				s.say(first(s.content, content)...)
			}
			then(s)
		}
	}
}

// stage is an answer under way.
type stage struct {
	*Wire
	play
	form   form
	answer Answer
	n      int // events sent
}

// say sends events, the answer's gap apart.
func (s *stage) say(events ...event) {
	for _, f := range s.encode(s.n, events) {
		if s.n > 0 && s.answer.Gap > 0 && !s.Pause(s.answer.Gap) {
			return
		}
		s.Chunk(f)
		s.n++
	}
}

// finishBody sends what closes the format, and the end.
func (s *stage) finishBody() {
	for _, f := range s.tail() {
		s.Chunk(f)
	}
	s.End()
}

// stop returns an action that ends the answer in the given way.
func stop(how Ending) func(*stage) {
	return func(s *stage) { s.Stop(how) }
}

// first returns the first n of events, all where n is negative.
func first(events []event, n int) []event {
	if n < 0 || n > len(events) {
		return events
	}
	return events[:n]
}

// late makes a fault's answer long enough to be released before the fault.
func late(script func(Answer) Script) func(Answer) Script {
	return func(a Answer) Script { return script(a.lengthen()) }
}

// brief makes a fault's answer two characters long.
func brief(script func(Answer) Script) func(Answer) Script {
	return func(a Answer) Script {
		if a.Text == "" {
			a.Text = DefaultText
		}
		runes := []rune(a.Text)
		a.Text, a.Reasoning, a.Tool, a.Pieces = string(runes[:min(2, len(runes))]), "", nil, 1
		return script(a)
	}
}
