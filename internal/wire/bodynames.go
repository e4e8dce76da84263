package wire

import (
	"bytes"
	"slices"
	"strings"
)

// contentNames are the top-level members that hold what is said to a model, and the
// shapes of answers, in which "model" may be anybody's word.
var contentNames = []string{
	"messages", "input", "contents", "system", "systemInstruction", "system_instruction", "instructions", "prompt", "tools", "functions",
	"metadata", "documents", "response_format", "text", "generationConfig", "generation_config", "file", "image",
}

// modelLists are members that hold several models: those to go on with where the first
// fails (OpenRouter's models, LiteLLM's fallbacks, where one model's name may lead to a
// list of others).
var modelLists = []string{"models", "fallbacks", "fallback_models", "context_window_fallbacks", "content_policy_fallbacks", "context_window_fallback_dict"}

// modelNames are members that hold one.
var modelNames = []string{"model", "fallback_model"}

// NamesInBody returns the names of models that some upstream may find in the body beside
// the one it is asked for, at any depth: fallbacks, the session of a realtime call, the
// requests of a batch. It is for whoever may use certain models only; a name too many
// does no harm there.
func (d *Doc) NamesInBody() (names []string) {
	switch {
	case d.boundary != "":
		for c := partsOf(d.body, d.boundary); c.next(); {
			name := strings.TrimSuffix(string(c.name), "[]")
			if slices.Contains(contentNames, name) {
				continue
			}
			switch part := bytes.TrimSpace(d.body[c.content.Start:c.content.End]); {
			case len(part) > 0 && (part[0] == '{' || part[0] == '[') && jsonValid(part):
				names = namesOf(names, name, part)
			case strings.EqualFold(name, "model"): // Models has it
			case isOneOf(name, modelNames), isOneOf(name, modelLists):
				names = append(names, string(part))
			}
		}
	case d.object:
		for c := jsonIn(d.body); c.next(); {
			if name, _ := jsonText(c.key); !slices.Contains(contentNames, name) {
				names = namesOf(names, name, c.value)
			} else if name == "tools" {
				names = toolModels(names, c.value)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesInside adds the names in a container.
func namesInside(names []string, raw []byte) []string {
	for c := jsonIn(raw); c.next(); {
		name := ""
		if c.object {
			name, _ = jsonText(c.key)
		}
		// What is said stands in the requests of a batch too; but the input of a session is
		// how it hears.
		switch {
		case !slices.Contains(contentNames, name), name == "input" && jsonKind(c.value) == '{':
			names = namesOf(names, name, c.value)
		case name == "tools":
			names = toolModels(names, c.value)
		}
	}
	return names
}

// namesOf adds the names in a member.
func namesOf(names []string, name string, value []byte) []string {
	kind := jsonKind(value)
	switch {
	case kind == '"' && isOneOf(name, modelNames):
		text, _ := jsonText(value)
		return append(names, text)
	case isOneOf(name, modelLists):
		for c := jsonIn(value); kind == '{' && c.next(); { // {"one": "another"}
			if text, ok := jsonText(c.value); ok {
				names = append(names, text)
			}
		}
		return listed(names, value)
	case kind == '{', kind == '[':
		return namesInside(names, value)
	}
	return names
}

// isOneOf compares as those do who do not heed case.
func isOneOf(name string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, name) })
}

// listed adds the names in what lists models: a name, a list of them or of lists, what
// holds one, or one that leads to others, {"one": ["another"]}.
func listed(names []string, value []byte) []string {
	switch jsonKind(value) {
	case '"':
		text, _ := jsonText(value)
		return append(names, text)
	case '[':
		for c := jsonIn(value); c.next(); {
			names = listed(names, c.value)
		}
	case '{':
		names = namesInside(names, value)
		for c := jsonIn(value); c.next(); {
			for other := jsonIn(c.value); jsonKind(c.value) == '[' && other.next(); {
				if text, ok := jsonText(other.value); ok {
					names = append(names, text)
				}
			}
		}
	}
	return names
}

// toolModels adds the models that tools run, such as OpenAI's image_generation: a member
// of the tool itself, and not of the schema of its parameters.
func toolModels(names []string, tools []byte) []string {
	for c := jsonIn(tools); jsonKind(tools) == '[' && c.next(); {
		for of := jsonIn(c.value); jsonKind(c.value) == '{' && of.next(); {
			if name, _ := jsonText(of.key); jsonKind(of.value) == '"' {
				names = namesOf(names, name, of.value)
			}
		}
	}
	return names
}
