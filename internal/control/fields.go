package control

import (
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/internal/route"
)

// Field is a key that a command takes: in key=value pairs, or by its name.
type Field struct {
	Name string
	// Takes says what its value is, with its range, for people.
	Takes string
	// Values are the words it takes, where there are only so many; nil otherwise.
	Values []string
	// Secret says that its value is not to be shown.
	Secret bool
}

// Fields lists the keys that a command takes for a chain, in the order of the
// reference: for completion. The chain matters where the pool ("*") has keys of its
// own. It is empty for commands without keys.
func Fields(command, chain string) []Field {
	var keys []config.Key
	switch command {
	case "vm add", "cand add", "cand set":
		section := candidateSection
		if strings.TrimSpace(chain) == route.PoolName {
			section = upstreamSection
		}
		keys = schema(section)
	case "rule add":
		for _, k := range schema(ruleSection) {
			if k.Name == "match" {
				keys = append(keys, schema(matchSection)...)
			} else {
				keys = append(keys, k)
			}
		}
	case "set":
		keys = numericKeys()
	}
	list := make([]Field, len(keys))
	for i := range keys {
		list[i] = field(&keys[i])
	}
	return list
}

func field(k *config.Key) Field {
	f := Field{Name: k.Name, Takes: strings.TrimSpace(k.Type + " " + k.Range), Secret: k.Secret}
	switch words, isChoice := strings.CutPrefix(k.Type, "one of "); {
	case isChoice:
		f.Values = strings.Split(strings.ReplaceAll(words, " or ", ", "), ", ")
	case k.Type == "true or false":
		f.Values = []string{"true", "false"}
	case k.Type == "on or off":
		f.Values = []string{"on", "off"}
	case k.Name == "status":
		f.Values = slices.Clone(config.Classes)
	case k.Name == "fault":
		f.Values = slices.Clone(config.Faults)
	}
	return f
}
