package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A recipe is what a Containerfile says of the image it makes.
type recipe struct {
	user                   string
	env                    []string
	entry, command, health []string
}

// instructions reads the last stage of a Containerfile.
func instructions(t *testing.T, text []byte) recipe {
	t.Helper()
	var r recipe
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	words := func(s string) (list []string) {
		if err := json.Unmarshal([]byte(s[strings.Index(s, "["):]), &list); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return list
	}
	for line := range strings.Lines(joined) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			r = recipe{}
			if !strings.HasSuffix(rest, "AS files") && rest != "scratch" {
				t.Errorf("FROM %s", rest)
			}
		case "USER":
			r.user = rest
		case "ENV":
			r.env = append(r.env, rest)
		case "ENTRYPOINT":
			r.entry = words(rest)
		case "CMD":
			r.command = words(rest)
		case "HEALTHCHECK":
			r.health = words(rest)
		case "", "#", "ARG", "ADD", "RUN", "LABEL", "COPY", "VOLUME", "EXPOSE":
		default:
			if !strings.HasPrefix(word, "#") {
				t.Errorf("the Containerfile says %s", word)
			}
		}
	}
	return r
}

// TestContainerfile: nobody's user, the program's own health check, and the archives
// of this release, for each machine by the name that builders give it.
func TestContainerfile(t *testing.T) {
	release := made(t)
	text := release.named(t, containerName).Data
	r := instructions(t, text)
	if r.user != "65532:65532" || !slices.Equal(r.env, []string{"XDG_STATE_HOME=/var/lib"}) || !slices.Equal(r.entry, []string{"/usr/bin/understudy"}) {
		t.Errorf("%+v", r)
	}
	if r.health[0] != r.entry[0] || r.health[1] != "healthcheck" || r.health[3] != r.command[3] {
		t.Errorf("%+v", r)
	}
	added := regexp.MustCompile(`(?m)^ADD (\S+) `).FindSubmatch(text)
	if added == nil {
		t.Fatal("nothing is added")
	}
	for _, b := range release.binaries {
		if b.Target.OS == "linux" {
			release.named(t, strings.ReplaceAll(string(added[1]), "${TARGETARCH}", b.Target.Arch))
		}
	}
}
