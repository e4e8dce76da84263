package main

import (
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestServingIsParsedAsByTheWholeGrammar(t *testing.T) {
	for _, line := range []string{
		"", "serve", "-c file.yaml", "serve --config=file.yaml --host 127.0.0.2 --port 0 --admin off --no-repl",
		"--port=1 serve", "serve --allow-unauthenticated --log-format json --log-level debug",
	} {
		args := strings.Fields(line)
		var brief serving
		var whole grammar
		for _, g := range []any{&brief, &whole} {
			p, err := newParser(g, streams{nil, io.Discard, io.Discard}, func(int) { t.Errorf("%q asks for help", line) })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Parse(args); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		if !reflect.DeepEqual(brief.Serve, whole.Serve) {
			t.Errorf("%q is %+v, by the whole grammar %+v", line, brief.Serve, whole.Serve)
		}
		if c := parseServing(args); c == nil || c.Command() != "serve" {
			t.Errorf("%q serves nothing", line)
		}
	}
	for _, line := range []string{
		"check", "--help", "serve --help", "serve -h", "serve nothing", "--wrong", "serve --log-level loud", "serve --port x", "version", completeWord,
	} {
		if parseServing(strings.Fields(line)) != nil {
			t.Errorf("%q serves", line)
		}
	}
}
