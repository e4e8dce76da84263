package console

import (
	"os"
	"strings"
	"testing"

	"understudy/internal/control"
)

func TestCompletion(t *testing.T) {
	v := someView()
	for _, c := range []struct{ line, want string }{
		{"", "vm cand rule freeze explain stats set target reload save help quit"},
		{"s", "stats set save"},
		{"FRE", "freeze"},
		{"fx", ""},
		{"vm ", "add rm"},
		{"freeze ", "ls add rm clear"},
		{"freeze c", "clear"},
		{"  freeze   a", "add"},
		{"freeze add ", "auto-strong 便宜的模型 *"},
		{"freeze add au", "auto-strong"},
		{"freeze add 便", "便宜的模型"},
		{"freeze add auto-strong ", "1 2 3 gpt-4o claude-sonnet-4-5 Direct API Claude Spare"},
		{"freeze add auto-strong c", "claude-sonnet-4-5 Claude"},
		{"freeze add auto-strong 'Dir", "Direct API"},
		{"freeze add 'auto-strong' d", "Direct API"},
		{"freeze add nobody ", ""},
		{"freeze add auto-strong 2 ", ""},
		{"freeze add auto-strong 2 60 ", ""},
		// Only who is frozen can be freed.
		{"freeze rm auto-strong ", "2 claude-sonnet-4-5 Claude"},
		{"freeze rm 便宜的模型 ", "1 qwen2.5 本地 模型"},
		{"freeze clear ", "auto-strong 便宜的模型 *"},
		{"vm rm ", "auto-strong 便宜的模型"}, // the pool is none
		{"vm add ", ""},
		{"vm add new au", "auth_style="},
		{"cand mv auto-strong 1 ", "1 2 3"},
		{"cand set auto-strong 1 stall", "stall_timeout"},
		{"cand set auto-strong 1 auth_style ", "bearer x-api-key x-goog-api-key api-key none default"},
		{"cand set auto-strong 1 enabled f", "false"},
		{"cand set auto-strong 1 stall_timeout ", "default"},
		{"cand set * primary timeout", "timeout_seconds"},
		{"cand set auto-strong 1 timeout", ""},
		{"cand add auto-strong api_k", "api_key= api_key_env= api_key_file="},
		{"cand add auto-strong at ", "1 2 3"},
		{"cand add auto-strong api_key=x na", "name="},
		{"cand add auto-strong name=x na", ""}, // given already
		{"cand add auto-strong auth_style=x-", "auth_style=x-api-key auth_style=x-goog-api-key"},
		{"cand add auto-strong upstream=", "upstream=primary"},
		{"cand add auto-strong head", "headers. header_env."},
		{"cand add auto-strong a", "at api_key= api_key_env= api_key_file= auth_style= any_of="},
		{`cand add auto-strong {"base_url": "http`, ""},
		{"cand ls ", "auto-strong 便宜的模型 *"},
		{"rule add a", "auto-strong at action="},
		{"rule add action=f", "action=freeze"},
		{"rule add fault=q", "fault=quota"},
		{"rule rm ", "auto-strong 便宜的模型 * 1 2"},
		{"rule rm auto-strong ", "1"},
		{"rule mv 1 ", "1 2"},
		{"stats a", "auto-strong"},
		{"set stall", "stall_timeout"},
		{"set target", ""}, // not to be set from here
		{"set auto_hedge_threshold ", "default"},
		{"target ", "on off status"},
		{"target o", "on off"},
		{"help fr", "freeze"},
		{"quit ", ""},
		{"reload ", ""},
		{"nonsense ", ""},
		{"'", "vm cand rule freeze explain stats set target reload save help quit"},
	} {
		start, options := complete(c.line, v)
		var got []string
		for _, o := range options {
			got = append(got, o.text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.line, strings.Join(got, " "), c.want)
		}
		if start < 0 || start > len(c.line) {
			t.Errorf("%q: the word begins at %d", c.line, start)
		}
	}
}

func TestCompletionWithoutAViewKnowsTheCommands(t *testing.T) {
	if _, options := complete("freeze add ", nil); len(options) != 0 {
		t.Error(options)
	}
	if _, options := complete("freeze a", nil); len(options) != 1 {
		t.Error(options)
	}
}

// Whatever a usage says, completion knows what it means: a new command with a new kind
// of slot has to say here how it is completed.
func TestEveryUsageIsUnderstood(t *testing.T) {
	known := []string{"vm", "name", "candidate", "index", "key", "value | default", "json | key=value", "seconds", "reason", "request", "command"}
	var check func(command string, items []item)
	check = func(command string, items []item) {
		for _, it := range items {
			switch {
			case it.group != nil:
				check(command, it.group)
			case it.slot != "":
				if !contains(known, it.slot) {
					t.Errorf("%s: nobody knows what <%s> is", command, it.slot)
				}
			case len(it.words) == 0:
				t.Errorf("%s: an empty item", command)
			}
		}
	}
	for _, c := range control.Commands() {
		check(c.Name, usage(c.Args))
	}
}

// Whoever adds a command writes what it does where people look for it.
func TestEveryCommandIsInTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range control.Commands() {
		if !strings.Contains(string(text), "`"+c.Name) {
			t.Errorf("docs/console.md does not tell of %s", c.Name)
		}
	}
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ line, words, last string }{
		{"", "", ""},
		{"vm", "", "vm"},
		{"vm ", "vm", ""},
		{"a 'b c' d", "a|b c", "d"},
		{`a "b \" c`, "a", `b " c`},
		{`a 'b`, "a", "b"},
		{`x {"a": "b c"} y`, `x|{"a": "b c"}`, "y"},
		{`x h={"a": "} "} y`, `x|h={"a": "} "}`, "y"},
		{`x {"a": "b`, "x", `{"a": "b`},
		{"a\tb ", "a|b", ""},
		{"name='two words' x", "name=two words", "x"},
		{"a''b", "", "ab"},
		{"便宜 的", "便宜", "的"},
	} {
		before, last := split(c.line)
		var texts []string
		for _, w := range before {
			texts = append(texts, w.text)
		}
		if got := strings.Join(texts, "|"); got != c.words || last.text != c.last {
			t.Errorf("%q: %q and %q, want %q and %q", c.line, got, last.text, c.words, c.last)
		}
	}
}

// What completion types is read back as what was meant.
func TestQuotedWordsAreReadBack(t *testing.T) {
	for _, text := range []string{"plain", "two words", "it's", `both ' and "`, "{curly", "[list", "", "便宜 的", `back\slash '`} {
		_, last := split("x " + quoted(text))
		if last.text != text {
			t.Errorf("%q is typed as %s and read as %q", text, quoted(text), last.text)
		}
	}
}

func TestCommonBeginning(t *testing.T) {
	for _, c := range []struct{ texts, want string }{
		{"on off", "o"}, {"gpt-4o", "gpt-4o"}, {"Claude claude-3", "Claude"}, {"a b", ""}, {"模型 模样", "模"}, {"模 樣", ""},
	} {
		var options []option
		for text := range strings.FieldsSeq(c.texts) {
			options = append(options, option{text: text})
		}
		if got := common(options); got != c.want {
			t.Errorf("%s: %q, want %q", c.texts, got, c.want)
		}
	}
}
