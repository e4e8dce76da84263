package control

import (
	"strings"
	"testing"
)

func TestSecretsOfALineAreFound(t *testing.T) {
	const key = "sk-proj-abcdefghijklmnop1234"
	for _, c := range []struct{ line, masked string }{
		{"cand add a base_url=http://x api_key=" + key + " model=m", "cand add a base_url=http://x api_key=sk-pro***1234 model=m"},
		{"cand add a api_key='" + key + "' model=m", "cand add a api_key='sk-pro***1234' model=m"},
		{`cand add a "api_key=short word"`, `cand add a "api_key=***`}, // a quote too many is hidden: better than one too few
		{"cand add a api_key=hush", "cand add a api_key=***"},
		{"cand add a api_key='not clos ed", "cand add a api_key='***"},
		{"cand set a 1 api_key " + key, "cand set a 1 api_key sk-pro***1234"},
		{"cand set a 1 api_key 'a b'", "cand set a 1 api_key '***'"},
		{"cand set a 1 headers.x-tenant whatever", "cand set a 1 headers.x-tenant ***"},
		{"cand set a 1 api_key_env MY_KEY", "cand set a 1 api_key_env MY_KEY"},
		{"cand set a 1 api_key_file /run/key", "cand set a 1 api_key_file /run/key"},
		{"cand add a api_key_env=MY_KEY auth_style=x-api-key", "cand add a api_key_env=MY_KEY auth_style=x-api-key"},
		{"cand add a headers.authorization=Bearer header_env.x-api-key=NAME", "cand add a headers.authorization=*** header_env.x-api-key=NAME"},
		{`cand add a headers={"x-a":"one","x-b": "two"} model=m`, `cand add a headers={"x-a":"***","x-b": "***"} model=m`},
		{`cand add a {"name": "n", "api_key": "` + key + `", "headers": {"x": "y"}, "model": "m"}`, `cand add a {"name": "n", "api_key": "sk-pro***1234", "headers": {"x": "***"}, "model": "m"}`},
		{`vm add v [{"api_key": "one", "model": "m"}, {"any_of": [{"api_key": "two"}]}]`, `vm add v [{"api_key": "***", "model": "m"}, {"any_of": [{"api_key": "***"}]}]`},
		{`cand add a {"api_key": "unfin`, `cand add a {"api_key": "***`},
		{`cand add a {"api_key": "with \" quote", "model": "m"}`, `cand add a {"api_key": "***", "model": "m"}`},
		{`cand add a {"api_key": 12345678, "model": "m"}`, `cand add a {"api_key": ***, "model": "m"}`},
		{"cand add a base_url=https://user:pass@host/v1?key=abc&v=1", "cand add a base_url=https://***@host/v1?key=***&v=1"},
		{"cand set a 1 proxy http://user:pass@proxy:8080", "cand set a 1 proxy http:/***8080"},
		{"cand add a proxy=http://10.0.0.1:3128", "cand add a proxy=http:/***3128"},
		{key, "sk-pro***1234"},
		{"frobnicate " + key + " now", "frobnicate sk-pro***1234 now"},
		{"freeze add auto-strong claude-sonnet-4-5-20250929 600 until it is well", "freeze add auto-strong claude-sonnet-4-5-20250929 600 until it is well"},
		{"set stall_timeout 60", "set stall_timeout 60"},
		{"rule add action=freeze status=429 body_regex='resets in (\\d+) m' freeze_from_group=1", "rule add action=freeze status=429 body_regex='resets in (\\d+) m' freeze_from_group=1"},
		{"cand set a 1 api_key sk-pro***1234", "cand set a 1 api_key sk-pro***1234"},
		{"", ""},
		{"   ", "   "},
		{"cand set a 1 api_key", "cand set a 1 api_key"},
		{"cand set a 1 api_key ", "cand set a 1 api_key "},
	} {
		if got := Masked(c.line); got != c.masked {
			t.Errorf("%s\nis shown as %s\nwant        %s", c.line, got, c.masked)
		}
	}
}

// While a key is typed, no more of it than of a finished one may be seen at any
// moment.
func TestAHalfTypedKeyIsASecretToo(t *testing.T) {
	const key = "topsecretvalue99"
	for _, line := range []string{
		"cand add a api_key=" + key, "cand add a 'api_key=" + key + "'", "cand add a api_key='" + key + "'", "cand set a 1 api_key " + key,
		`cand add a {"api_key":"` + key + `"}`, `cand add a {"headers":{"x-a":"` + key + `"}}`, "cand add a headers.x=" + key,
		"cand add a base_url=https://u:" + key + "@host/",
	} {
		start := strings.Index(line, key)
		for n := start + 1; n <= len(line); n++ {
			typed := line[:n]
			covered := func(i int) bool {
				for _, s := range Secrets(typed) {
					if s.Start <= i && i < s.End {
						return true
					}
				}
				return false
			}
			for i := start; i < min(n, start+len(key)); i++ {
				// A URL's password is one only once the @ is there.
				if !covered(i) && !strings.Contains(line, "://") {
					t.Fatalf("%q shows byte %d", typed, i)
				}
			}
		}
	}
}

func TestSpansAreInOrderAndApart(t *testing.T) {
	line := `cand add a api_key=sk-proj-abcdefghijklmnop1234 headers={"x":"sk-proj-abcdefghijklmnop1234"} base_url=http://sk-proj-abcdefghijklmnop1234@h`
	last := -1
	for _, s := range Secrets(line) {
		if s.Start <= last || s.End <= s.Start || s.End > len(line) {
			t.Fatalf("span %v after %d", s, last)
		}
		last = s.End
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add(`cand add a {"api_key": "x\", "headers": {`)
	f.Add("a 'b \"c =")
	f.Fuzz(func(t *testing.T, line string) {
		last := 0
		for _, s := range Secrets(line) {
			if s.Start < last || s.End <= s.Start || s.End > len(line) {
				t.Fatalf("%q: span %v after %d", line, s, last)
			}
			last = s.End
		}
	})
}

func TestFieldsAreThoseOfTheCommand(t *testing.T) {
	names := func(command, chain string) string {
		var list []string
		for _, f := range Fields(command, chain) {
			list = append(list, f.Name)
		}
		return strings.Join(list, " ")
	}
	if got := names("rule add", ""); got != "name status body_regex fault action max_attempts backoff_base max_wait freeze_from_group freeze_unit freeze_seconds scope" {
		t.Error(got)
	}
	if got := names("cand set", "*"); !strings.HasPrefix(got, "id timeout_seconds name base_url") {
		t.Error(got)
	}
	if got := names("cand set", "auto"); strings.Contains(got, "timeout_seconds") || !strings.HasPrefix(got, "name base_url") {
		t.Error(got)
	}
	if got := names("set", ""); strings.Contains(got, "target_mode") || strings.Contains(got, "host") || !strings.Contains(got, "stall_timeout") {
		t.Error(got)
	}
	if got := names("freeze add", ""); got != "" {
		t.Error(got)
	}
	for _, f := range Fields("cand add", "") {
		switch f.Name {
		case "auth_style":
			if strings.Join(f.Values, " ") != "bearer x-api-key x-goog-api-key api-key none" {
				t.Error(f.Values)
			}
		case "api_key":
			if !f.Secret {
				t.Error("api_key is a secret")
			}
		}
	}
}
