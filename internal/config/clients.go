package config

import (
	"strings"
)

const sha256Pattern = `^[0-9a-fA-F]{64}$`

var sha256Hex = lazily(sha256Pattern)

var clientTable = &table[Client]{
	path:     "clients[]",
	together: func() form { return oneOfKeys("oneOf", "key", "key_env", "key_sha256") },
	doc:      "Who may call. A key is taken from Authorization: Bearer, x-api-key, x-goog-api-key, api-key or ?key=, and never sent on.",
	keys: []key[Client]{
		text("name", "", "What logs and statistics call the client, unique.", func(c *Client) *string { return &c.Name }).required(),
		custom(Key{Name: "key", Type: "secret", Doc: "The client's key. Give this, key_env or key_sha256.", form: lineForm, Secret: true}, func(d *decoder, n *node, c *Client) {
			d.oneClientKey(n, c, func() {
				if s, ok := d.secret(n); ok {
					c.Key = LiteralCredential(s.Reveal())
				}
			})
		}),
		custom(Key{Name: "key_env", Type: "name of a variable", Doc: "The environment variable that holds the key.", form: variableForm}, func(d *decoder, n *node, c *Client) {
			d.oneClientKey(n, c, func() {
				if v, ok := d.variable(n); ok {
					c.Key = v
				}
			})
		}),
		custom(Key{Name: "key_sha256", Type: "64 hex digits", Doc: "The SHA-256 of the key, so that the key itself stands nowhere.", form: func() form { return patternForm(sha256Pattern) }}, func(d *decoder, n *node, c *Client) {
			d.oneClientKey(n, c, func() {
				s, ok := d.line(n)
				if ok && !sha256Hex().MatchString(s) {
					d.errorOn(n, "no SHA-256", "write 64 hex digits, such as sha256sum prints for the key")
					return
				}
				c.KeySHA256 = strings.ToLower(s)
			})
		}),
		texts("models", "The virtual models it may call, \"*\" is the pool; all where the key is missing.", lineForm, func(c *Client) *[]string { return &c.Models }, func(_ *decoder, _ *node, s string) (string, bool) { return s, true }).notEmpty(),
		whole("rpm", 0, 0, maxCount, "Requests per minute; 0 = no limit.", func(c *Client) *int { return &c.RPM }),
		whole("tpm", 0, 0, maxCount, "Tokens per minute; 0 = no limit.", func(c *Client) *int { return &c.TPM }),
		whole("max_parallel", 0, 0, maxCount, "Requests in flight at once; 0 = no limit.", func(c *Client) *int { return &c.MaxParallel }),
	},
}

func (d *decoder) oneClientKey(n *node, c *Client, read func()) {
	if !c.Key.IsNone() || c.KeySHA256 != "" {
		d.errorOn(n, "a second key", "keep one of key, key_env and key_sha256")
		return
	}
	read()
}

func (d *decoder) clients(n *node, models []VirtualModel) []Client {
	if n == nil {
		return nil
	}
	known := map[string]bool{"*": true}
	for _, m := range models {
		known[m.Name] = true
	}
	list := []Client{}
	names, keys := map[string]bool{}, map[[32]byte]bool{}
	d.each(n, func(item *node) {
		var c Client
		given := clientTable.decode(d, item, &c)
		if item.kind != kindMap {
			return
		}
		if given["key"] == nil && given["key_env"] == nil && given["key_sha256"] == nil {
			d.errorAt(outerStart(item), "no key", "add key, key_env or key_sha256")
		}
		if at := given["models"]; at != nil && at.kind == kindList && len(at.items) == 0 {
			d.errorOn(at, "an empty list, with which the client may call nothing", "name models, or remove the key")
		}
		if names[c.Name] {
			d.errorOn(given["name"], "duplicate client "+quoteName(c.Name), "give each client a name of its own")
		}
		if at := given["key_env"]; at != nil && c.Key.Missing() != "" {
			d.missing(at, c.Key, "this client is refused")
		}
		if c.Key.IsLiteral() && keys[c.Key.literal.Digest()] {
			d.errorOn(given["key"], "the same key as another client's", "give each client a key of its own")
		}
		names[c.Name] = c.Name != ""
		if c.Key.IsLiteral() {
			keys[c.Key.literal.Digest()] = true
		}
		for i, m := range c.Models {
			if at := given["models"]; !known[m] && at.kind == kindList && i < len(at.items) {
				d.warnAt(at.items[i].outer, quoteName(m)+" is no virtual model", "name virtual models, or \"*\" for the pool")
			}
		}
		list = append(list, c)
	})
	return list
}
