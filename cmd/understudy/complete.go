package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"understudy/internal/config"
	"understudy/internal/control"
	"understudy/internal/drill"
)

// completeWord is the word with which a shell's script asks what may be typed next:
// understudy __complete =CURRENT EARLIER... The word that is being typed has a "=" in
// front of it, because some shells lose arguments that are empty.
const completeWord = "__complete"

// A suggestion is a word that may be typed, and what it is.
type suggestion struct{ word, about string }

// An offer is everything that may be typed in a place.
type offer struct {
	list []suggestion
	// files says that files may be named too, those that end in one of suffixes, or
	// any where there are none.
	files    bool
	suffixes []string
}

// write prints an offer for a shell's script: "none", or "files" with the endings
// they may have; then the words, each on a line of its own with a tab before what it
// is.
func (o *offer) write(w io.Writer) error {
	first := "none"
	if o.files {
		first = strings.Join(append([]string{"files"}, o.suffixes...), " ")
	}
	if _, err := fmt.Fprintln(w, first); err != nil {
		return err
	}
	for _, s := range o.list {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", s.word, s.about); err != nil {
			return err
		}
	}
	return nil
}

// typed is a command line as far as it has been typed.
type typed struct {
	node    *kong.Node
	given   map[string]string // the values of flags, by name; "" for those without one
	pending *kong.Flag        // the flag whose value comes next, nil = none
	after   bool              // "--" has been typed: no flags any more
	args    int               // positional arguments that are there
}

// complete says what may be typed in place of the word current, behind the words
// before. It knows what the grammar says, and nothing else.
func complete(app *kong.Node, current string, before []string) offer {
	t := typed{node: app, given: map[string]string{}}
	for _, word := range before {
		t.take(word)
	}
	o := t.offer(current)
	o.list = slices.DeleteFunc(o.list, func(s suggestion) bool { return !strings.HasPrefix(s.word, current) })
	return o
}

// take reads a word that is there whole.
func (t *typed) take(word string) {
	switch {
	case t.pending != nil:
		t.given[t.pending.Name], t.pending = word, nil
	case t.after:
		t.args++
	case word == "--":
		t.after = true
	case strings.HasPrefix(word, "--"):
		name, value, has := strings.Cut(word[2:], "=")
		f := t.flag(func(f *kong.Flag) bool { return f.Name == name })
		switch {
		case f == nil:
			t.given[strings.TrimPrefix(name, "no-")] = ""
		case has || f.IsBool():
			t.given[f.Name] = value
		default:
			t.pending = f
		}
	case strings.HasPrefix(word, "-") && word != "-":
		t.takeShort(word[1:])
	default:
		if child := t.child(word); child != nil {
			t.node = child
		} else {
			t.args++
		}
	}
}

// takeShort reads short flags, of which the last may have a value.
func (t *typed) takeShort(letters string) {
	for i, c := range letters {
		f := t.flag(func(f *kong.Flag) bool { return f.Short == c })
		if f == nil {
			return
		}
		rest := letters[i+len(string(c)):]
		if f.IsBool() {
			t.given[f.Name] = ""
			continue
		}
		if rest == "" {
			t.pending = f
		} else {
			t.given[f.Name] = strings.TrimPrefix(rest, "=")
		}
		return
	}
}

func (t *typed) child(word string) *kong.Node {
	if t.args > 0 {
		return nil
	}
	for _, c := range t.node.Children {
		if !c.Hidden && (c.Name == word || slices.Contains(c.Aliases, word)) {
			return c
		}
	}
	return nil
}

// flags are those that may stand here: the command's, and those of the commands above
// it. Before any command they are those of the one that is run without its name.
func (t *typed) flags() (list []*kong.Flag) {
	nodes := []*kong.Node{t.node}
	if t.node.DefaultCmd != nil {
		nodes = append(nodes, t.node.DefaultCmd)
	}
	for n := t.node.Parent; n != nil; n = n.Parent {
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		for _, f := range n.Flags {
			if !f.Hidden {
				list = append(list, f)
			}
		}
	}
	return list
}

func (t *typed) flag(is func(*kong.Flag) bool) *kong.Flag {
	for _, f := range t.flags() {
		if is(f) {
			return f
		}
	}
	return nil
}

func (t *typed) offer(current string) offer {
	if t.pending != nil {
		return t.values(t.pending.Value, "")
	}
	if name, _, has := strings.Cut(current, "="); has && strings.HasPrefix(name, "--") && !t.after {
		if f := t.flag(func(f *kong.Flag) bool { return "--"+f.Name == name }); f != nil && !f.IsBool() {
			return t.values(f.Value, name+"=")
		}
		return offer{}
	}
	if strings.HasPrefix(current, "-") && !t.after {
		return offer{list: t.names()}
	}
	var o offer
	if i := min(t.args, len(t.node.Positional)-1); i >= 0 && (i == t.args || t.node.Positional[i].IsCumulative()) {
		o = t.values(t.node.Positional[i], "")
	}
	if t.args == 0 && !t.after {
		for _, c := range t.node.Children {
			if !c.Hidden {
				o.list = append(o.list, suggestion{c.Name, brief(c.Help)})
			}
		}
	}
	return o
}

// names are the flags that have not been given, or may be given again.
func (t *typed) names() (list []suggestion) {
	for _, f := range t.flags() {
		if _, has := t.given[f.Name]; has && !f.IsCumulative() {
			continue
		}
		list = append(list, suggestion{"--" + f.Name, brief(f.Help)})
		if f.Tag.Negatable != "" {
			list = append(list, suggestion{"--no-" + f.Name, brief(f.Help)})
		}
	}
	return list
}

// brief is the first sentence of a help text, up to what it says besides.
func brief(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	sentence, _, _ = strings.Cut(sentence, "; ")
	return strings.TrimSuffix(sentence, ".")
}

// sources are where values come from that only the moment knows, by the word that a
// field of the grammar names them with: `complete:"models"`.
var sources = map[string]func(t *typed) []suggestion{
	"models":   (*typed).models,
	"chains":   func(t *typed) []suggestion { return append(t.models(), suggestion{"*", "the pool"}) },
	"requests": (*typed).requests,
	"classes":  func(*typed) []suggestion { return plainly(config.Classes) },
	"scenarios": func(*typed) (list []suggestion) {
		for _, s := range drill.Scenarios() {
			list = append(list, suggestion{s.ID, s.Title}, suggestion{s.Name, s.Title})
		}
		return list
	},
	"none": func(*typed) []suggestion { return nil },
}

// configSuffixes are what configurations end in.
var configSuffixes = []string{"yaml", "yml", "toml"}

// values are what a flag or an argument takes.
func (t *typed) values(v *kong.Value, prefix string) (o offer) {
	hint := v.Tag.Get("complete")
	switch source, ok := sources[hint]; {
	case ok:
		o.list = source(t)
	case v.Enum != "":
		o.list = plainly(v.EnumSlice())
	case hint == "files":
		o.files = true
	case hint == "configurations":
		o.files, o.suffixes = true, configSuffixes
	}
	o.list = slices.DeleteFunc(o.list, func(s suggestion) bool { return s.word == "" })
	for i := range o.list {
		o.list[i].word = prefix + o.list[i].word
	}
	return o
}

func plainly(words []string) (list []suggestion) {
	for _, w := range words {
		list = append(list, suggestion{word: w})
	}
	return list
}

// configuration is the file that the command would use.
func (t *typed) configuration() configFlag {
	path := t.given["config"]
	if rest, ok := strings.CutPrefix(path, "~/"); ok { // a shell has not seen it yet
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	return configFlag{Config: path}
}

// models are the virtual models of the configuration; none where it has mistakes.
func (t *typed) models() (list []suggestion) {
	path, err := t.configuration().find()
	if err != nil {
		return nil
	}
	src, err := config.Read(path)
	if err != nil {
		return nil
	}
	cfg, _ := config.Parse(src)
	if cfg == nil {
		return nil
	}
	for _, m := range cfg.Models {
		n := 0
		for _, tier := range m.Tiers {
			n += len(tier)
		}
		list = append(list, suggestion{m.Name, count(n, "candidate")})
	}
	return list
}

// requestTime is how long a shell may wait for a process that may not be there.
const requestTime = 700 * time.Millisecond

// requests are the latest of a running process.
func (t *typed) requests() (list []suggestion) {
	f := adminFlag{configFlag: t.configuration(), Admin: t.given["admin"], Token: cmp.Or(t.given["token"], os.Getenv("UNDERSTUDY_ADMIN_TOKEN"))}
	admin, _, err := f.where()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	var answer control.Requests
	if err := admin.Get(ctx, "/api/requests?limit=50", &answer); err != nil {
		return nil
	}
	for i := range answer.Requests {
		r := &answer.Requests[i]
		about := []string{r.Start.Local().Format(time.TimeOnly), cmp.Or(r.Model, r.Path), r.Ending}
		if r.Status != 0 {
			about = append(about, strconv.Itoa(r.Status))
		}
		list = append(list, suggestion{r.ID, oneLine(strings.Join(about, " "))})
	}
	return list
}

// oneLine is a text from outside as a shell may show it beside a word.
func oneLine(text string) string { return strings.Join(strings.Fields(plain(text)), " ") }
