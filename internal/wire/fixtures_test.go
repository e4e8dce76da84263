package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bufio"

	"pgregory.net/rapid"
)

// fixtureNow is the Date of every fixture that has headers.
var fixtureNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// readTable reads one of the tables beside the fixtures: a row by file, a value by
// column.
func readTable(t testing.TB, name string) map[string]map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]string{}
	var head []string
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if head == nil {
			head = cells
			continue
		}
		row := map[string]string{}
		for i, cell := range cells {
			row[head[i]] = cell
		}
		rows[cells[0]] = row
	}
	return rows
}

// fixture is one recorded answer.
type fixture struct {
	status int
	header map[string][]string
	body   []byte
}

func readFixture(t testing.TB, name string) fixture {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".http") {
		return fixture{200, nil, data}
	}
	head, body, _ := bytes.Cut(data, []byte("\r\n\r\n"))
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(rest, "\r\n\r\n"...)))).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		t.Fatal(err)
	}
	return fixture{status, h, body}
}

// wantOf is what the client asked for in a row of index.tsv.
func wantOf(row map[string]string) Want {
	kinds := map[string]Kind{"openai-chat": Chat, "completions": Completions, "openai-responses": Responses, "anthropic": Messages,
		"gemini-sse": Generate, "gemini-array": Generate, "ollama": OllamaChat}
	k := kinds[row["api"]]
	if strings.Contains(row["file"], "ollama-generate") {
		k = OllamaGenerate
	}
	return Want{Kind: k, Stream: row["stream"] == "1", Array: row["api"] == "gemini-array", MinChars: 10, Judged: true, ErrorIsFailure: true}
}

// outcome is all that a reader says of a body.
type outcome struct {
	Verdict    Verdict
	Release    int64 // -1 = never
	Usage      Usage
	WellFormed bool
	Terminal   bool
	Started    bool
	Unknown    bool
	Why        string
	Err        string // its raw bytes
	Status     int
	Open       Framing
}

// readAll feeds a body in pieces that end at the cuts, and at the body's end.
func readAll(w Want, body []byte, cuts []int) outcome {
	r := NewReader(w)
	at := 0
	for _, cut := range append(cuts, len(body)) {
		// A piece of its own, overwritten afterwards: the reader must not keep it.
		piece := append([]byte(nil), body[at:cut]...)
		r.Feed(piece)
		for i := range piece {
			piece[i] = '#'
		}
		at = cut
	}
	open := r.Open()
	r.End()
	o := outcome{r.Verdict(), -1, r.Usage(), r.WellFormed(), r.Terminal(), r.Started(), r.Unknown(), r.Why(), "", 0, open}
	if at, ok := r.Release(); ok {
		o.Release = at
	}
	if e := r.Erred(); e != nil {
		o.Err, o.Status = string(e.Raw), e.Status
	}
	return o
}

func everyByte(n int) []int {
	cuts := make([]int, 0, n)
	for i := 1; i < n; i++ {
		cuts = append(cuts, i)
	}
	return cuts
}

func count(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func TestEveryFixtureIsReadAsTheIndexSays(t *testing.T) {
	for name, row := range readTable(t, "index.tsv") {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			w := wantOf(row)
			whole := readAll(w, f.body, nil)
			for _, cuts := range [][]int{nil, everyByte(len(f.body))} {
				o := readAll(w, f.body, cuts)
				if o != whole {
					t.Errorf("depends on the split:\n%+v\n%+v", whole, o)
				}
			}
			verdict := map[Verdict]string{Healthy: "healthy", Erred: "error", Empty: "empty"}[whole.Verdict]
			if f.status >= 400 {
				verdict = "error" // the status says so already
			}
			if verdict != row["verdict"] {
				t.Errorf("verdict %s (%s), want %s", verdict, whole.Why, row["verdict"])
			}
			if want := row["first_release"]; want == "-" {
				if whole.Release >= 0 && f.status < 400 {
					t.Errorf("released at %d, want never", whole.Release)
				}
			} else if n, _ := strconv.ParseInt(want, 10, 64); whole.Release < n-2 || whole.Release > n {
				t.Errorf("released at %d, want %d", whole.Release, n)
			}
			u := whole.Usage
			for column, got := range map[string]int64{"input_tokens": u.Input, "output_tokens": u.Output, "cached_tokens": u.Cached, "total_tokens": u.Total} {
				if count(got) != row[column] {
					t.Errorf("%s %s, want %s", column, count(got), row[column])
				}
			}
			if (whole.Verdict == Healthy) != (whole.Why == "") {
				t.Errorf("verdict %v with why %q", whole.Verdict, whole.Why)
			}
		})
	}
}

func TestNoSplitOfAnyFixtureChangesAnything(t *testing.T) {
	index := readTable(t, "index.tsv")
	names := make([]string, 0, len(index))
	for name := range index {
		names = append(names, name)
	}
	bodies := map[string][]byte{}
	for _, name := range names {
		bodies[name] = readFixture(t, name).body
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "file")
		body := bodies[name]
		w := wantOf(index[name])
		whole := readAll(w, body, nil)
		cuts := randomCuts(rapid.Uint64().Draw(t, "seed"), len(body))
		if o := readAll(w, body, cuts); o != whole {
			t.Fatalf("%s cut at %v:\n%+v\n%+v", name, cuts, whole, o)
		}
	})
}

// randomCuts cuts n bytes at random places, often close to each other.
func randomCuts(seed uint64, n int) []int {
	rng := rand.New(rand.NewPCG(seed, 1))
	var cuts []int
	for at := 0; ; {
		step := 1 + rng.IntN(4)
		if rng.IntN(2) == 0 {
			step = 1 + rng.IntN(400)
		}
		if at += step; at >= n {
			return cuts
		}
		cuts = append(cuts, at)
	}
}

func TestEveryErrorIsExplainedAsTheTableSays(t *testing.T) {
	index := readTable(t, "index.tsv")
	for name, row := range readTable(t, "errors.tsv") {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			body := f.body
			if f.status < 300 {
				o := readAll(wantOf(index[name]), body, nil)
				if o.Verdict != Erred {
					t.Fatalf("verdict %v", o.Verdict)
				}
				body = []byte(o.Err)
				if late := row["failover"] == "late"; late != (o.Release >= 0) {
					t.Errorf("released at %d, failover %s", o.Release, row["failover"])
				}
			}
			got := Explain(f.status, f.header, body, fixtureNow)
			if got.Fault.String() != row["fault"] {
				t.Errorf("fault %v, want %s: %+v", got.Fault, row["fault"], got)
			}
			hint := "-"
			if got.HasRetryAfter {
				hint = fmt.Sprintf("%g", got.RetryAfter.Seconds())
			}
			if hint != row["retry_after_s"] {
				t.Errorf("retry after %s, want %s", hint, row["retry_after_s"])
			}
		})
	}
}
