package wire

import (
	"testing"
)

// FuzzFrames reads any bytes as the answer to any question, whole and in pieces:
// the same must come out, and it must make sense.
func FuzzFrames(f *testing.F) {
	for name, row := range readTable(f, "index.tsv") {
		w := wantOf(row)
		f.Add(readFixture(f, name).body, byte(w.Kind), w.Stream, byte(1), uint64(7))
	}
	for _, body := range []string{"", "\ufeff", "\x1f\x8b", "data: {", "[{},{}]", "{}\n{}\n", "{\n}\n", "error: x\r\r", "<html>", "(x", "\xef\xbb"} {
		f.Add([]byte(body), byte(Chat), true, byte(1), uint64(7))
	}
	f.Fuzz(func(t *testing.T, body []byte, kind byte, stream bool, flags byte, seed uint64) {
		types := [...]string{"", "application/json", "text/event-stream", "application/x-ndjson", "text/html", "audio/mpeg"}
		w := Want{Kind: Kind(kind % byte(Images+1)), Stream: stream, MinChars: 10, Judged: flags&1 != 0, ErrorIsFailure: flags&2 != 0,
			TerminalOptional: flags&4 != 0, Array: flags&8 != 0, ContentType: types[int(flags>>4)%len(types)]}
		whole := readAll(w, body, nil)
		if whole.Verdict == Pending {
			t.Error("pending after the end")
		}
		if (whole.Verdict == Healthy) != (whole.Why == "") {
			t.Errorf("%v because %q", whole.Verdict, whole.Why)
		}
		if whole.Release > int64(len(body)) || whole.Verdict == Healthy && whole.Release < 0 || whole.Verdict == Empty && whole.Release >= 0 {
			t.Errorf("%v, released at %d of %d", whole.Verdict, whole.Release, len(body))
		}
		u := whole.Usage
		if u.Total >= 0 && u.Total != u.Input+u.Output || u.Cached > u.Input && u.Input >= 0 || u.Total < 0 && u.Input >= 0 && u.Output >= 0 {
			t.Errorf("usage %+v", u)
		}
		quick, slow := NewReader(w), deaf(w)
		quick.Feed(body)
		slow.Feed(body)
		if a, b := told(quick), told(slow); a != b {
			t.Errorf("read anew: %s\nwith echoes: %s", b, a)
		}
		if o := readAll(w, body, randomCuts(seed, len(body))); o != whole {
			t.Errorf("depends on the split:\n%+v\n%+v", whole, o)
		}
		if len(body) < 200 {
			if o := readAll(w, body, everyByte(len(body))); o != whole {
				t.Errorf("depends on the split:\n%+v\n%+v", whole, o)
			}
		}
	})
}

// FuzzExplain explains any body: whatever it is, somebody is at fault, and no wait
// is out of bounds.
func FuzzExplain(f *testing.F) {
	for name := range readTable(f, "errors.tsv") {
		x := readFixture(f, name)
		f.Add(x.status, x.body, "retry-after", "7")
	}
	f.Add(200, []byte(`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"{}\"}}"}}}`), "retry-after-ms", "NaN")
	f.Fuzz(func(t *testing.T, status int, body []byte, name, value string) {
		got := Explain(status, map[string][]string{name: {value}}, body, fixtureNow)
		if got.Fault == FaultNone || got.Fault > FaultServer {
			t.Errorf("fault %v", got.Fault)
		}
		if got.RetryAfter < 0 || got.RetryAfter > maxWait || !got.HasRetryAfter && got.RetryAfter != 0 {
			t.Errorf("retry after %v %v", got.RetryAfter, got.HasRetryAfter)
		}
		if got.Status != status && (got.Status < 400 || got.Status > 599) {
			t.Errorf("status %d of %d", got.Status, status)
		}
		ParseWait(string(body))
	})
}
