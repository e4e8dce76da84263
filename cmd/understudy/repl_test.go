//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// chatter sends a request every 20 ms until the test is over or it is stopped, and
// counts the answers.
func (g *stage) chatter() (stop func() int) {
	ctx, cancel := context.WithCancel(g.t.Context())
	done := make(chan struct{})
	var answers atomic.Int64
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := g.ask(false); err != nil {
					g.t.Errorf("a request: %v", err)
					return
				}
				answers.Add(1)
			}
		}
	}()
	return func() int {
		cancel()
		<-done
		return int(answers.Load())
	}
}

var requestLine = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d INF request\b`)

// While a log line comes every 20 ms, a line is typed character by character, completed
// with Tab, corrected and run: nothing of it is touched, and no log line is lost or
// torn.
func TestTypingGoesOnWhileLogsArrive(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.typed("")
	stop := g.chatter()
	line := ""
	for _, r := range "freeze add 便宜的模型 1 77 the understudy is hoarse" {
		g.typ(string(r))
		line += string(r)
		if r == ' ' {
			g.wait(line, func(text string) bool { return promptIn(text) == strings.TrimRight(line, " ") })
		}
	}
	g.typed(line)
	g.press("BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "BSpace")
	g.typ("ill")
	g.typed("freeze add 便宜的模型 1 77 the understudy is ill")
	g.press("Enter")
	g.shows("便宜的模型/本地 1m")
	for _, step := range []struct{ keys, want string }{
		{"fre\t", "freeze"}, {"r\t", "freeze rm"}, {"便\t", "freeze rm 便宜的模型"}, {"1", "freeze rm 便宜的模型 1"},
	} {
		for i, part := range strings.Split(step.keys, "\t") {
			if i > 0 {
				g.press("Tab")
			}
			if part != "" {
				g.typ(part)
			}
		}
		g.typed(step.want)
	}
	g.press("Enter")
	g.shows("all candidates are available")
	answers := stop()
	g.wait("every request in the log", func(string) bool { return len(requestLine.FindAllString(g.scrolled(), -1)) >= answers })
	all := g.scrolled()
	if n := len(requestLine.FindAllString(all, -1)); n != answers || answers < 20 {
		t.Errorf("%d lines for %d requests", n, answers)
	}
	// Nothing else stands above the prompt than what was printed, line by line.
	first := strings.Index(all, "help lists the commands")
	last := strings.LastIndex(all, "understudy> ")
	known := regexp.MustCompile(`^(\d\d:\d\d:\d\d INF |  \S|help lists|understudy> freeze |便宜的模型 1 本地 \(qwen\): |$)`)
	for n, text := range strings.Split(all[first:last], "\n") {
		if !known.MatchString(text) {
			t.Errorf("line %d is torn: %q", n, text)
		}
	}
	g.run("quit")
	g.ended(0)
}

// The bar counts down by seconds, one after another, while half a line stands in the
// prompt.
func TestTheBarCountsDownBesideTheTyping(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.run("freeze add auto-strong 2 90")
	g.typ("half a li")
	left := regexp.MustCompile(`frozen: auto-strong/Claude (?:(\d+)m)?(\d+)s`)
	var seen []int
	g.wait("five seconds", func(text string) bool {
		if found := left.FindStringSubmatch(text); found != nil {
			minutes, _ := strconv.Atoi(found[1])
			seconds, _ := strconv.Atoi(found[2])
			if n := 60*minutes + seconds; len(seen) == 0 || seen[len(seen)-1] != n {
				seen = append(seen, n)
				if line := promptIn(text); len(seen) > 1 && line != "half a li" {
					t.Errorf("the line is %q", line)
				}
			}
		}
		return len(seen) == 6
	})
	for i := 1; i < len(seen); i++ {
		// A busy machine may skip one; it may never count up.
		if step := seen[i-1] - seen[i]; step < 1 || step > 2 {
			t.Errorf("it counts %v", seen)
		}
	}
	g.press("C-u")
	g.run("freeze rm auto-strong Claude")
	g.shows("all candidates are available")
}

// The figures of the bar are those of the requests.
func TestTheBarShowsTheFigures(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	for range 3 {
		if _, err := g.ask(false); err != nil {
			t.Fatal(err)
		}
	}
	g.wait("three requests", func(text string) bool {
		return regexp.MustCompile(`auto-strong +3 rpm +51 tpm +\d+ms average +- cache hits`).MatchString(text)
	})
	g.run("target on")
	g.shows("target mode is on")
	if err := os.WriteFile(g.config, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.shows("the file is not in force: ")
}

func TestTheMenuOfCompletions(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.typ("freeze add auto-strong ")
	g.press("Tab")
	g.shows("claude-sonnet-4-5  all of this model")
	g.typed("freeze add auto-strong")
	g.press("Tab", "Tab", "Tab", "Tab", "Tab")
	g.typed("freeze add auto-strong 'Direct API'")
	g.shows("> Direct API")
	g.press("BTab")
	g.typed("freeze add auto-strong claude-sonnet-4-5")
	g.press("Escape")
	g.typed("freeze add auto-strong")
	g.wait("no menu", func(text string) bool { return !strings.Contains(text, "all of this model") })
	g.press("C-u")
	g.typ("cand set auto-strong 1 a")
	g.press("Tab")
	g.shows("api_key_env")
	g.typ("u")
	g.press("Tab")
	g.typed("cand set auto-strong 1 auth_style")
	g.press("Tab")
	g.shows("x-goog-api-key")
}

// Widths from the usual down to nothing, with wide characters and a line that is longer
// than the terminal: whatever is seen fits, and nothing is torn when there is room again.
func TestTheTerminalChangesItsWidth(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.run("freeze add 便宜的模型 本地 600 因为它太慢了")
	g.shows("frozen: 便宜的模型/本地 ")
	g.typ("cand set 便宜的模型 本地 ")
	for _, c := range []struct {
		columns int
		bar     string
	}{
		{40, "auto-strong  0 rpm  0 tpm  -  - cache"}, {20, "auto-st…    0    0"}, {12, "auto-st…"}, {6, "auto-…"}, {3, "au…"}, {2, "a…"}, {1, "…"},
		{2, "a…"}, {7, "auto-s…"}, {30, "auto-st…    0    0     -     -"}, {60, "auto-strong  0 rpm  0 tpm  - average  - cache hits"},
		{100, "auto-strong  0 rpm  0 tpm  - average  - cache hits"}, {80, "auto-strong  0 rpm  0 tpm  - average  - cache hits"},
	} {
		g.tmux("resize-window", "-x", strconv.Itoa(c.columns), "-y", "24")
		g.wait(fmt.Sprintf("%d columns", c.columns), func(text string) bool { return slices.Contains(strings.Split(text, "\n"), c.bar) })
	}
	g.typed("cand set 便宜的模型 本地")
	for _, c := range []struct {
		rows int
		bar  string
	}{
		{10, "auto-strong  0 rpm"}, {4, "frozen:"}, {2, "frozen:"}, {1, "understudy> cand set"}, {3, "frozen:"}, {24, "auto-strong  0 rpm"},
	} {
		g.tmux("resize-window", "-x", "80", "-y", strconv.Itoa(c.rows))
		g.wait(fmt.Sprintf("%d rows", c.rows), func(text string) bool {
			return strings.Contains(text, "understudy> cand set") && strings.Contains(text, c.bar)
		})
	}
	// Dragged: nobody waits for anything between the sizes. The line must survive it.
	for columns := 79; columns > 20; columns -= 7 {
		g.tmux("resize-window", "-x", strconv.Itoa(columns), "-y", "24")
	}
	g.tmux("resize-window", "-x", "80", "-y", "24")
	g.press("C-l") // a clean screen, to count what is on it
	g.wait("a clean screen", func(text string) bool { return strings.HasPrefix(text, "understudy> cand set 便宜的模型 本地") })
	g.typ("weight 2")
	g.press("Enter")
	// Which of the widths the program has heard of when it answers is not known: a busy
	// machine may have told it of the last one only after. The words are the same.
	g.wait("the answer", func(text string) bool {
		return strings.Contains(strings.Join(strings.Fields(text), " "), "便宜的模型 1 本地 (qwen): weight = 2")
	})
	g.wait("one bar, of 80 columns", func(text string) bool {
		return strings.Count(text, "frozen: 便宜的模型/本地") == 1 && strings.Contains(text, "\nauto-strong  0 rpm  0 tpm  - average  - cache hits\n")
	})
	g.run("quit")
	g.ended(0)
}

// At 40 columns everything can still be read.
func TestFortyColumns(t *testing.T) {
	t.Parallel()
	g := newStage(t, 40, 30, nil)
	g.shows("all candidates are available")
	g.run("vm")
	g.shows("便宜的模型   1  qwen")
	g.run("stats auto-strong")
	g.wait("six rows of cells", func(string) bool {
		return len(regexp.MustCompile(`(?m)^ +-\d+h \.{24}$`).FindAllString(g.scrolled(), -1)) == 18
	})
	g.typ(`cand add auto-strong {"name": "a long one", "base_url": "http://127.0.0.1:9", "auth_style": "none", "model": "last"}`)
	g.wait("the end of the line", func(text string) bool { return strings.Contains(text, `"last"}`) })
	g.press("Home")
	g.wait("its beginning", func(text string) bool { return strings.Contains(text, "understudy> cand add auto-strong") })
	g.press("Enter")
	g.shows("added a candidate to auto-strong")
}

// More is printed at once than the screen has rows: every line is there, once and in
// order.
func TestLongOutputIsWhole(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 10, nil)
	g.shows("all candidates are available")
	g.run("help")
	g.wait("the end of it", func(text string) bool { return strings.Contains(text, "comments stay.") && promptIn(text) == "" })
	all := g.scrolled()
	last := -1
	for _, line := range []string{"command ", "vm add", "cand ls", "rule mv", "freeze clear", "stats ", "reload", "quit ", "A candidate is named"} {
		i := strings.Index(all, "\n"+line)
		if i <= last || strings.Count(all, "\n"+line) != 1 {
			t.Errorf("%q: at %d after %d, %d times", line, i, last, strings.Count(all, "\n"+line))
		}
		last = i
	}
}

// Without colours the same words are there, and no colour is sent.
func TestNoColour(t *testing.T) {
	t.Parallel()
	colours := regexp.MustCompile(`\x1b\[[0-9;]*3[0-7][0-9;]*m`)
	for _, c := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=", true}} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			g := newStage(t, 80, 24, []string{c.env})
			g.shows("all candidates are available")
			g.run("freeze add auto-strong 2 600")
			g.run("nonsense")
			g.run("stats auto-strong")
			g.shows("frozen: auto-strong/Claude ")
			g.wait("the cells", func(string) bool { return strings.Contains(g.scrolled(), "*\n") })
			if got := colours.MatchString(g.tmux("capture-pane", "-p", "-e", "-S", "-")); got != c.want {
				t.Errorf("colours: %v", got)
			}
		})
	}
}

// A key is on the screen at no moment, nor in anything that is kept.
func TestAKeyIsNeverOnTheScreen(t *testing.T) {
	t.Parallel()
	const key = "sk-proj-abcdefghijklmnop1234"
	g := newStage(t, 100, 24, nil)
	g.shows("all candidates are available")
	g.typ("cand set auto-strong 1 api_key ")
	for _, r := range key {
		g.typ(string(r))
		if strings.Contains(g.text(), "sk-proj-a") {
			t.Fatalf("%s", g.text())
		}
	}
	g.typed("cand set auto-strong 1 api_key sk-pro******************1234")
	g.press("C-a", "C-k")
	g.typ(`cand add auto-strong {"name": "k", "base_url": "http://127.0.0.1:9", "model": "m", "api_key": "` + key + `"}`)
	g.press("Enter")
	g.shows("added a candidate")
	if !strings.Contains(contents(t, g.config), key) {
		t.Error("the key is not in the file")
	}
	g.press("Up")
	g.wait("the mask", func(text string) bool { return strings.Contains(text, "sk-pro***1234") })
	g.press("Enter")
	g.shows("type the key again")
	if all := g.scrolled(); strings.Contains(all, "proj-abc") {
		t.Errorf("%s", all)
	}
	g.press("C-d")
	g.ended(0)
	kept, err := filepath.Glob(filepath.Join(g.dir, "*", "console-history"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if text := contents(t, kept[0]); strings.Contains(text, "proj-abc") || !strings.Contains(text, "sk-pro***1234") {
		t.Errorf("%s", text)
	}
	if info, _ := os.Stat(kept[0]); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	// The next console has the lines of this one.
	path, _ := built()
	next := newScreen(t, 100, 24, []string{"XDG_STATE_HOME=" + g.dir}, path, "serve", "-c", g.config)
	next.shows("understudy>")
	next.press("Up")
	next.wait("the line before", func(text string) bool { return strings.HasSuffix(promptIn(text), `"api_key": "sk-pro***1234"}`) })
}
