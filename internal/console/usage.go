package console

import (
	"slices"
	"strings"
)

// An item is one place of a command's usage: "<vm>", "at", "[<index>]".
type item struct {
	// Either one of these words,
	words []string
	// or a slot of this name: "vm", "candidate", "value | default",
	slot string
	// or a group that may be left out.
	group []item
	// repeats says that more of the same may follow.
	repeats bool
}

// usage takes what follows a command's name apart: the same text that help prints.
func usage(args string) []item {
	items, _ := parseUsage(args)
	return items
}

func parseUsage(text string) (items []item, rest string) {
	for {
		text = strings.TrimLeft(text, " ")
		switch {
		case text == "":
			return items, ""
		case text[0] == ']':
			return items, text[1:]
		case text[0] == '[':
			group, after := parseUsage(text[1:])
			items, text = append(items, item{group: group}), after
		case text[0] == '<':
			slot, after, _ := strings.Cut(text[1:], ">")
			slot, repeats := strings.CutSuffix(slot, " ...")
			items, text = append(items, item{slot: slot, repeats: repeats || slot == "reason"}), after
		default:
			// Words, with a bar between those of which one is meant.
			end := strings.IndexAny(text, "[<]")
			if end < 0 {
				end = len(text)
			}
			var words []string
			for w := range strings.SplitSeq(text[:end], "|") {
				words = append(words, strings.TrimSpace(w))
			}
			items, text = append(items, item{words: words}), text[end:]
		}
	}
}

// takes says whether a word can stand in an item's place.
func (it item) takes(w word) bool {
	digits := w.text != "" && strings.Trim(w.text, "0123456789") == ""
	pair := w.json || strings.Contains(w.text, "=")
	switch {
	case it.words != nil:
		return slices.ContainsFunc(it.words, func(s string) bool { return strings.EqualFold(s, w.text) })
	case it.slot == "vm":
		return !pair && !digits && w.text != "at"
	case it.slot == "index":
		return digits
	case strings.HasPrefix(it.slot, "json"):
		return pair
	}
	return true
}

// A place is where the next word of a line may stand, with what was said before it.
type place struct {
	item
	vm, key string   // the chain and the key named before it, "" if none is
	given   []string // the keys of the pairs before it
}

// places are all the places that the word after some others may have.
func places(items []item, before []word, so place) (list []place) {
	if len(items) == 0 {
		return nil
	}
	first, rest := items[0], items[1:]
	if first.group != nil {
		return append(places(slices.Concat(first.group, rest), before, so), places(rest, before, so)...)
	}
	if len(before) == 0 {
		so.item = first
		return []place{so}
	}
	w := before[0]
	if !first.takes(w) {
		return nil
	}
	switch {
	case first.slot == "vm":
		so.vm = strings.TrimSpace(w.text)
	case first.slot == "key":
		so.key = w.text
	case strings.HasPrefix(first.slot, "json"):
		name, _, _ := strings.Cut(w.text, "=")
		so.given = append(slices.Clone(so.given), name)
	}
	list = places(rest, before[1:], so)
	if first.repeats {
		list = append(list, places(items, before[1:], so)...)
	}
	return list
}
