package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// JSONSchema is the schema of a configuration in the words of JSON Schema 2020-12, for
// editors: every key with its type, its range, its default and what it means. It is
// made from the tables that [Parse] goes by. What it refuses Parse refuses; what only
// Parse can know, docs/configuration.md lists. The text ends with a line break.
func JSONSchema() []byte {
	root := form{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "understudy configuration"}}
	root = append(root, fileTable.form()...)
	equalTable := &table[entry]{path: "virtual_models.*[].any_of[]", doc: "One of several equals: a candidate, or {upstream: id, model: m}.",
		keys: slices.DeleteFunc(slices.Clone(candidateTable.keys), func(k key[entry]) bool { return k.Name == "any_of" }), together: equalForm}
	root = append(root, keyword{"$defs", form{
		{"server", serverTable.form()},
		{"ignored_error_endpoint", endpointTable.form()},
		{"pool", poolTable.form()},
		{"upstream", upstreamTable.form()},
		{"virtual_models", modelsForm()},
		{"virtual_model", modelTable.form()},
		{"chain", described("Candidates, tried in this order.", form{{"type", "array"}, {"minItems", 1}, {"items", refForm("candidate")}})},
		{"candidate", candidateTable.form()},
		{"equal", equalTable.form()},
		{"hedge", hedgeTable.form()},
		{"rules", listForm(refForm("rule"))},
		{"rule", ruleTable.form()},
		{"match", matchTable.form()},
		{"client", clientTable.form()},
		{"store", storeTable.form()},
		{"request_log", requestLogTable.form()},
		{"line", patternForm("^[^" + control + "]+$")},
		{"variable", patternForm(variablePattern)},
	}})
	text, err := root.MarshalJSON()
	if err != nil {
		panic("config: the schema is no JSON: " + err.Error()) // its values are constants
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		panic("config: the schema is no JSON: " + err.Error())
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// form is what the schema says of a mapping.
func (t *table[T]) form() form {
	f := described(t.doc, form{{"type", "object"}})
	if t.empty {
		f = described(t.doc, form{{"type", []string{"object", "null"}}})
	}
	var properties form
	var required []string
	for i := range t.keys {
		k := &t.keys[i].Key
		properties = append(properties, keyword{k.Name, k.property()})
		if k.Required {
			required = append(required, k.Name)
		}
	}
	old := slices.Sorted(maps.Keys(retired))
	f = append(f, keyword{"properties", properties},
		keyword{"patternProperties", form{{freeKeys, true}, {"^(" + strings.Join(old, "|") + ")$", form{{"deprecated", true}, {"description", retiredDoc()}}}}},
		keyword{"additionalProperties", false})
	var together form
	if t.together != nil {
		together = t.together()
	}
	for _, m := range together {
		if m.name == "required" {
			required = append(required, m.value.([]string)...)
		} else {
			f = append(f, m)
		}
	}
	if len(required) > 0 {
		f = append(f, keyword{"required", required})
	}
	return f
}

func described(doc string, f form) form { return append(form{{"description", doc}}, f...) }

// retiredDoc says what replaced the retired keys.
func retiredDoc() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(retired)) {
		list = append(list, name+" is now "+retired[name])
	}
	return "Retired, without effect: " + strings.Join(list, "; ") + "."
}

// property is what the schema says of a key.
func (k *Key) property() form {
	doc := k.Doc
	if strings.HasPrefix(doc, "As in server") {
		// Who looks at one key should not have to look up another.
		doc = serverTable.key(k.Name).Doc + " " + doc
	}
	f := described(doc, nil)
	if shown := k.ShownDefault(); shown != "" && k.DefaultWords != "see below" {
		f = append(f, keyword{"markdownDescription", doc + "\n\nDefault: " + codeUnless(k.DefaultWords != "", shown)})
	}
	f = append(f, k.form()...)
	if k.Default != "" {
		f = append(f, keyword{"default", defaultValue(k.Default)})
	}
	return f
}

func codeUnless(words bool, text string) string {
	if words {
		return text
	}
	return "`" + text + "`"
}

// defaultValue reads a default as a file would have it.
func defaultValue(text string) any {
	n := plainScalar(text)
	if strings.HasPrefix(text, "[") {
		n = parseDocument(YAML, []byte("default: "+text)).root.find("default")
	}
	budget := maxVisits
	v, _ := plainValue(n, &budget)
	return jsonValue(v)
}

// jsonValue is a plain value as encoding/json writes it.
func jsonValue(v any) any {
	switch v := v.(type) {
	case Map:
		f := form{}
		for _, e := range v {
			f = append(f, keyword{e.Key, jsonValue(e.Value)})
		}
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = jsonValue(v[i])
		}
		return list
	}
	return v
}
