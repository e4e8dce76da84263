package config

import "fmt"

// ChainPath is the path of the list of a virtual model's tiers, for edits: the
// model's own value, or its candidates where it is written as a mapping.
func (s Source) ChainPath(model string) ([]any, error) {
	path, _, err := s.chainAt(model)
	return path, err
}

// CandidatePath is the path of a candidate, for edits. index counts from 1 over
// all tiers, as [Candidate.Index] does.
func (s Source) CandidatePath(model string, index int) ([]any, error) {
	path, list, err := s.chainAt(model)
	if err != nil {
		return nil, err
	}
	left := index
	for i, item := range list.items {
		members := item.find("any_of")
		if members == nil || members.kind != kindList {
			if left--; left == 0 {
				return append(path, i), nil
			}
			continue
		}
		if left <= len(members.items) && left > 0 {
			return append(path, i, "any_of", left-1), nil
		}
		left -= len(members.items)
	}
	return nil, fmt.Errorf("candidate %d of %q: %w", index, model, ErrNotFound)
}

func (s Source) chainAt(model string) ([]any, *node, error) {
	doc := parseDocument(s.Format, s.Bytes)
	path := []any{"virtual_models", model}
	var at *node
	if doc.root != nil {
		at = doc.root.find("virtual_models").find(model)
	}
	if c := at.find("candidates"); c != nil {
		path, at = append(path, "candidates"), c
	}
	if at == nil || at.kind != kindList {
		return nil, nil, fmt.Errorf("virtual model %q: %w", model, ErrNotFound)
	}
	return path, at, nil
}
