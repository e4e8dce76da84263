package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// Map is a mapping whose order is kept when an edit writes it. Edits take a
// map[string]any too; its keys are written in the order of the reference.
type Map []Entry

// Entry is one pair of a Map.
type Entry struct {
	Key   string
	Value any
}

func (m Map) find(key string) int {
	return slices.IndexFunc(m, func(e Entry) bool { return e.Key == key })
}

// date is a TOML date, which no key takes but a free key may hold.
type date string

// plainValue turns a tree into plain values: nil, bool, int64, float64, string,
// date, []any and Map. Aliases and merge keys are expanded, up to a budget; ok
// is false where that is spent.
func plainValue(n *node, budget *int) (v any, ok bool) {
	if *budget--; *budget < 0 {
		return nil, false
	}
	switch n.kind {
	case kindBool:
		return n.bool, true
	case kindInt:
		return n.int, true
	case kindFloat:
		return n.num, true
	case kindText:
		return n.text, true
	case kindDate:
		return date(n.text), true
	case kindList:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			v, ok := plainValue(item, budget)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case kindMap:
		m := make(Map, 0, len(n.pairs))
		for _, p := range n.pairs {
			if p.key == "<<" && p.value.kind != kindText {
				continue
			}
			v, ok := plainValue(p.value, budget)
			if !ok {
				return nil, false
			}
			m = append(m, Entry{p.key, v})
		}
		return m, true
	}
	return nil, true
}

// sameValue compares plain values; numbers by what they are worth, mappings
// without regard to order.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case Map:
		b, ok := b.(Map)
		if !ok || len(a) != len(b) {
			return false
		}
		at := make(map[string]int, len(b))
		for i, e := range b {
			at[e.Key] = i
		}
		for _, e := range a {
			i, ok := at[e.Key]
			if !ok || !sameValue(e.Value, b[i].Value) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case float64:
		if math.IsNaN(a) {
			f, ok := b.(float64)
			return ok && math.IsNaN(f)
		}
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
		return a == b
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
		return a == b
	}
	return a == b
}

// normal turns what a caller gives into plain values.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case bool, int64, date:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("%w: text that is not UTF-8", ErrCannotEdit)
		}
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: a number that is not finite", ErrCannotEdit)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	case Map:
		m := make(Map, 0, len(v))
		for _, e := range v {
			n, err := normal(e.Value)
			if err != nil {
				return nil, err
			}
			if m.find(e.Key) >= 0 || !utf8.ValidString(e.Key) {
				return nil, fmt.Errorf("%w: a key that stands twice or is not UTF-8", ErrCannotEdit)
			}
			m = append(m, Entry{e.Key, n})
		}
		return m, nil
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(r.Uint()), nil
	case reflect.Float32:
		return normal(r.Float())
	case reflect.String:
		return normal(r.String())
	case reflect.Slice:
		list := make([]any, 0, r.Len())
		for i := range r.Len() {
			n, err := normal(r.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			list = append(list, n)
		}
		return list, nil
	case reflect.Map:
		if r.Type().Key().Kind() != reflect.String {
			break
		}
		var m Map
		for _, k := range r.MapKeys() {
			m = append(m, Entry{k.String(), r.MapIndex(k).Interface()})
		}
		sort.Slice(m, func(i, j int) bool { return keyBefore(m[i].Key, m[j].Key) })
		return normal(m)
	}
	return nil, fmt.Errorf("%w: a %T cannot be written", ErrCannotEdit, v)
}

// keyBefore is the order in which the keys of a map are written: that of the
// reference, then the alphabet.
func keyBefore(a, b string) bool {
	i, j := keyRank(a), keyRank(b)
	return i < j || i == j && strings.Compare(a, b) < 0
}

func keyRank(key string) int {
	if rank, ok := keyRanks()[key]; ok {
		return rank
	}
	return math.MaxInt
}

var keyRanks = sync.OnceValue(func() map[string]int {
	ranks := map[string]int{"id": -2, "upstream": -1} // what the others are about
	for _, s := range []Section{candidateTable.section(), ruleTable.section(), matchTable.section(), clientTable.section(), upstreamTable.section(), modelTable.section()} {
		for _, k := range s.Keys {
			if _, ok := ranks[k.Name]; !ok {
				ranks[k.Name] = len(ranks)
			}
		}
	}
	return ranks
})

// The functions below make the change on plain values that an edit makes on
// bytes. They copy what they change.

func withSet(v any, path []any, to any) (any, bool) {
	if len(path) == 0 {
		return to, true
	}
	switch step := path[0].(type) {
	case string:
		m, ok := v.(Map)
		if !ok && v != nil {
			return nil, false
		}
		m = slices.Clone(m)
		i := m.find(step)
		if i < 0 {
			i = len(m)
			m = append(m, Entry{Key: step})
		}
		n, ok := withSet(m[i].Value, path[1:], to)
		m[i].Value = n
		return m, ok
	case int:
		list, ok := v.([]any)
		if !ok || step < 0 || step >= len(list) {
			return nil, false
		}
		list = slices.Clone(list)
		n, ok := withSet(list[step], path[1:], to)
		list[step] = n
		return list, ok
	}
	return nil, false
}

func withList(v any, path []any, change func([]any) ([]any, bool)) (any, bool) {
	at, ok := lookUp(v, path)
	list, isList := at.([]any)
	if ok && at != nil && !isList {
		return nil, false
	}
	list, ok = change(slices.Clone(list))
	if !ok {
		return nil, false
	}
	return withSet(v, path, list)
}

func withRemoved(v any, path []any) (any, bool) {
	last := len(path) - 1
	switch step := path[last].(type) {
	case int:
		return withList(v, path[:last], func(list []any) ([]any, bool) {
			if step < 0 || step >= len(list) {
				return nil, false
			}
			return slices.Delete(list, step, step+1), true
		})
	case string:
		at, ok := lookUp(v, path[:last])
		m, isMap := at.(Map)
		i := m.find(step)
		if !ok || !isMap || i < 0 {
			return nil, false
		}
		return withSet(v, path[:last], slices.Delete(slices.Clone(m), i, i+1))
	}
	return nil, false
}

func lookUp(v any, path []any) (any, bool) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(Map)
			i := m.find(step)
			if !ok || i < 0 {
				return nil, false
			}
			v = m[i].Value
		case int:
			list, ok := v.([]any)
			if !ok || step < 0 || step >= len(list) {
				return nil, false
			}
			v = list[step]
		default:
			return nil, false
		}
	}
	return v, true
}
