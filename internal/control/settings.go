package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/internal/proxy"
)

// numericKeys are the server's keys that set changes.
func numericKeys() []config.Key {
	return slices.DeleteFunc(slices.Clone(schema(serverSection)), func(k config.Key) bool { return !numeric(k) || targetKey(k.Name) })
}

func targetKey(name string) bool { return strings.HasPrefix(name, "target_mode_") }

func setServer(c *call) (string, error) {
	if err := c.want(0, 2); err != nil {
		return "", err
	}
	if len(c.args) == 0 {
		t := newTable("key", "now", "takes", "default", "what it is")
		for _, k := range numericKeys() {
			t.row(k.Name, c.current(&k), strings.TrimSpace(k.Type+" "+k.Range), k.ShownDefault(), k.Doc)
		}
		return t.String(), nil
	}
	key, err := c.serverKey(strings.TrimPrefix(c.args[0], "server."))
	if err != nil {
		return "", err
	}
	if len(c.args) == 1 {
		return fmt.Sprintf("%s is %s (%s; default %s): %s", key.Name, c.current(&key), strings.TrimSpace(key.Type+" "+key.Range), key.ShownDefault(), key.Doc), nil
	}
	var did string
	notes, err := c.edit(func(f *file) (out config.Source, err error) {
		out, did, err = c.setAt(f.Source, []any{serverSection, key.Name}, key, c.args[1])
		return out, err
	}, func() string { return did })
	if err != nil {
		return "", err
	}
	return did + notes, nil
}

// current is what holds for a key: what the served file says, else the default.
func (c *call) current(k *config.Key) string {
	if v, written := c.s.Config.Source.Value([]any{serverSection, k.Name}); written && v != nil {
		return c.name(fmt.Sprint(v))
	}
	return k.ShownDefault()
}

// serverKey finds a key that set may change; the error says how else to change
// the others.
func (c *call) serverKey(name string) (config.Key, error) {
	path := c.name(c.s.Config.Source.Path)
	byHand := "change it under server in " + path + ", then: reload (or wait, the file is looked at every " +
		c.s.Config.Server.ReloadPoll.String() + ")"
	if c.s.Config.Server.ReloadPoll == 0 {
		byHand = "change it under server in " + path + ", then: reload"
	}
	switch by := config.Retired(name); {
	case by != "":
		return config.Key{}, fmt.Errorf("%s is retired and has no effect: set %s instead", name, by)
	case targetKey(name):
		return config.Key{}, fmt.Errorf("%s cannot be set from here: %s. target on|off switches the mode itself", c.shown(name), byHand)
	}
	keys := schema(serverSection)
	i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == name })
	if i < 0 {
		guess := c.didYouMean(name, keyNames(numericKeys()))
		if guess == "" {
			guess = "; set alone lists them"
		}
		return config.Key{}, fmt.Errorf("no numeric key %s%s", c.shown(name), guess)
	}
	if !numeric(keys[i]) {
		return config.Key{}, fmt.Errorf("%s is no number (it takes %s) and cannot be set from here: %s", name, keys[i].Type, byHand)
	}
	return keys[i], nil
}

func switchTarget(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	target := c.c.deps.Handler.Target()
	if len(c.args) == 1 {
		word := strings.ToLower(c.args[0])
		if word != "on" && word != "off" {
			return "", c.misuse(c.shown(c.args[0]) + " is neither on nor off")
		}
		if on := word == "on"; target.Set(on) != on {
			c.changed("target mode " + word)
		}
	}
	if !target.On() {
		return "target mode is off", nil
	}
	server := &c.s.Config.Server
	return fmt.Sprintf("target mode is on: exhausted requests are tried again every %s for %s, then %s", server.TargetInterval, server.TargetMaxWait, server.TargetTimeoutAction), nil
}

func reload(c *call) (string, error) {
	if err := c.want(0, 0); err != nil {
		return "", err
	}
	if err := c.c.deps.Reload(c.ctx); err != nil {
		return "", err
	}
	c.changed("configuration file read again")
	now := c.c.builder()
	text := "reloaded " + now.summary()
	status := now.config()
	if len(status.NeedsRestart) > 0 {
		text += "\ntakes effect after a restart: " + strings.Join(status.NeedsRestart, ", ")
	}
	for _, w := range status.Warnings {
		text += "\nwarning: " + w
	}
	return text, nil
}

// summary says what a configuration holds.
func (b *builder) summary() string {
	candidates := 0
	for _, chain := range b.s.Routes.Chains() {
		for _, tier := range chain.Tiers {
			candidates += len(tier)
		}
	}
	text := fmt.Sprintf("%s: virtual models: %d", b.name(b.s.Config.Source.Path), len(b.s.Routes.Names()))
	if b.s.Routes.Pool() != nil {
		text += " and the pool"
	}
	return text + fmt.Sprintf(", candidates: %d", candidates)
}

func save(c *call) (string, error) {
	if err := c.want(0, 0); err != nil {
		return "", err
	}
	src, err := config.Read(c.s.Config.Source.Path)
	if err != nil {
		return "", err
	}
	cfg, problems := config.Parse(src)
	if cfg == nil {
		return "", errors.New("the file has mistakes, the configuration in force is an older one:\n" + c.problems(problems, config.Error))
	}
	if _, err := proxy.Compile(cfg); err != nil {
		return "", err
	}
	text := c.name(src.Path) + " is valid, and every change is in it already"
	if src.Hash != c.s.Config.Source.Hash {
		text = c.name(src.Path) + " is valid, but not the one in force: reload"
	}
	if warnings := c.problems(problems, config.Warning); warnings != "" {
		text += "\n" + warnings
	}
	if c.c.deps.Save != nil {
		if err := c.c.deps.Save(c.ctx); err != nil {
			return "", fmt.Errorf("%s\nbut the state could not be written: %w", text, err)
		}
	}
	return text, nil
}
