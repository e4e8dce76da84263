package control

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"understudy/internal/config"
	"understudy/internal/route"
)

func listModels(c *call) (string, error) {
	if err := c.want(0, 0); err != nil {
		return "", err
	}
	v := c.view()
	t := newTable("vm", ">#", ">tier", "name", "model", "state", ">left", ">in flight", "base url")
	for i := range v.Models {
		m := &v.Models[i]
		for j := range m.Candidates {
			k := &m.Candidates[j]
			t.row(first(j, m.Name), strconv.Itoa(k.Index), strconv.Itoa(k.Tier), k.Name, orDash(k.Model), k.State, left(k.SecondsLeft), strconv.Itoa(k.InFlight), k.BaseURL)
		}
	}
	return t.String(), nil
}

// first is a text in the first row of several, "" below it.
func first(row int, text string) string {
	if row > 0 {
		return ""
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func addModel(c *call) (string, error) {
	if err := c.want(2, -1); err != nil {
		return "", err
	}
	name := strings.TrimSpace(c.args[0])
	switch {
	case name == route.PoolName:
		return "", errors.New(`"*" is the pool's name; cand add * adds an upstream to it`)
	case name == "" || strings.Contains(name, "=") || strings.HasPrefix(name, "{"):
		return "", c.misuse("the name of the virtual model comes first")
	}
	v, err := c.value(c.args[1:], candidateSection, true)
	if err != nil {
		return "", err
	}
	if m, ok := v.(config.Map); ok && !hasKey(m, "candidates") {
		v = []any{m}
	}
	notes, err := c.edit(func(f *file) (config.Source, error) {
		if f.model(name) != nil {
			return f.Source, fmt.Errorf("there is a virtual model %s already; cand add adds a candidate to it", c.shown(name))
		}
		return f.Set([]any{"virtual_models", name}, v)
	}, func() string { return "virtual model " + c.name(name) })
	if err != nil {
		return "", err
	}
	return "added virtual model " + c.name(name) + notes, nil
}

func hasKey(m config.Map, key string) bool {
	for _, e := range m {
		if e.Key == key {
			return true
		}
	}
	return false
}

func removeModel(c *call) (string, error) {
	if err := c.want(1, 1); err != nil {
		return "", err
	}
	name := strings.TrimSpace(c.args[0])
	if name == route.PoolName {
		return "", errors.New("the pool is no virtual model: cand rm * removes an upstream of it")
	}
	notes, err := c.edit(func(f *file) (config.Source, error) {
		switch {
		case f.model(name) == nil:
			return f.Source, c.unknownModel(name)
		case len(f.cfg.Models) == 1:
			return f.Source, errors.New("the last virtual model cannot be removed; add another one first (vm add)")
		}
		return f.Remove([]any{"virtual_models", name})
	}, func() string { return "virtual model " + c.name(name) })
	if err != nil {
		return "", err
	}
	return "removed virtual model " + c.name(name) + notes, nil
}
