package stats

// A minute is the last sixty seconds, one by one: what the rates are read from.
type minute [60]second

type second struct {
	at        int64 // Unix seconds
	successes int64
	tokens    int64
	answered  int64 // answers that should have reported tokens
	reported  int64 // those that did
}

func (m *minute) book(e *event) {
	s := &m[floorMod(e.at, int64(len(m)))]
	// A slot never written to says 0, which is not later than a time before 1970.
	if s.at > e.at && *s != (second{}) {
		return
	}
	if s.at != e.at {
		*s = second{at: e.at}
	}
	if e.class == succeeded {
		s.successes++
	}
	if e.answered {
		s.answered++
	}
	switch in, out := e.tokens[input], e.tokens[output]; {
	case e.tokens[total] >= 0:
		s.tokens = plus(s.tokens, e.tokens[total])
	case in >= 0 || out >= 0:
		// At most one of the two: with both there would be a total.
		s.tokens = plus(s.tokens, max(in, out))
	default:
		return
	}
	s.reported++
}

// sum adds up the sixty seconds as of now, the running one included.
func (m *minute) sum(now int64) second {
	var all second
	for i := range m {
		s := &m[i]
		if s.at > now || s.at <= now-int64(len(m)) {
			continue
		}
		all.successes += s.successes
		all.answered += s.answered
		all.reported += s.reported
		all.tokens = plus(all.tokens, s.tokens)
	}
	return all
}

func (m *minute) forget(after int64) {
	for i := range m {
		if m[i].at > after {
			m[i] = second{}
		}
	}
}
