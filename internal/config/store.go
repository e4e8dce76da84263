package config

import ()

const storePrefix = "understudy:"

var storeTable = &table[Store]{
	path: "store",
	together: func() form {
		return append(oneOfKeys("oneOf", "url", "url_env", "url_file"), keyword{"not", form{{"required", []string{"password_env", "password_file"}}}})
	},
	doc: "A Redis or Valkey server that several instances share, for freezes, trials and limits (docs/scale.md). Sessions need none: where they go is computed. A change needs a restart.",
	keys: []key[Store]{
		custom(Key{Name: "url", Type: "redis URL", Doc: "Where the store is: redis:// or rediss:// (TLS), with user, password and number of the database if it wants them. Give this, url_env or url_file.", form: storeURLForm, Secret: true}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.URL, func() (Credential, bool) { return d.storeURL(n) })
		}),
		custom(Key{Name: "url_env", Type: "name of a variable", Doc: "The environment variable that holds url.", form: variableForm}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.URL, func() (Credential, bool) { return d.variable(n) })
		}),
		custom(Key{Name: "url_file", Type: "path", Doc: "The file that holds url; white space at its end is dropped.", form: lineForm}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.URL, func() (Credential, bool) { return d.secretPath(n, "url") })
		}),
		custom(Key{Name: "password_env", Type: "name of a variable", Doc: "The environment variable that holds the password, in the place of one in the URL.", form: variableForm}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.Password, func() (Credential, bool) { return d.variable(n) })
		}),
		custom(Key{Name: "password_file", Type: "path", Doc: "The file that holds the password, instead of password_env.", form: lineForm}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.Password, func() (Credential, bool) { return d.secretPath(n, "url") })
		}),
		custom(Key{Name: "ca_file", Type: "path", DefaultWords: "the system's", Doc: "The certificates, PEM, that rediss:// trusts.", form: lineForm}, func(d *decoder, n *node, s *Store) { s.CAFile, _ = d.filePath(n) }),
		text("prefix", storePrefix, "What every key in the store begins with. Instances of different prefixes do not see each other.", func(s *Store) *string { return &s.Prefix }),
	},
}

// storeText is a URL with nothing behind its host but the number of a database: what
// may stand in its query elsewhere has keys of its own here.
var storeText = lazily(storePattern)

var storePattern = "^(" + anyCase("redis") + "|" + anyCase("rediss") + ")://[^/?#" + notInURL + control + "]*(/[0-9]{0,9})?$"

func storeURLForm() form { return patternForm(storePattern) }

// store reads the mapping, or the URL alone.
func (d *decoder) store(n *node) *Store {
	if n == nil {
		return nil
	}
	s := &Store{Prefix: storePrefix}
	switch n.kind {
	case kindNull:
		d.wrongType(n, "a mapping")
		return s
	case kindText:
		if c, ok := d.storeURL(n); ok {
			s.URL = c
		}
		return s
	}
	given := storeTable.decode(d, n, s)
	if given["url"] == nil && given["url_env"] == nil && given["url_file"] == nil && n.kind == kindMap {
		d.errorAt(outerStart(n), "url is missing", "add url, url_env or url_file")
	}
	if given["password_env"] != nil && given["password_file"] != nil {
		return s // told already
	}
	for _, c := range []Credential{s.URL, s.Password} {
		if missing := c.Missing(); missing != "" {
			d.warnAt(outerStart(n), missing+" is not set or cannot be read", "set it, or the store stays away")
		}
	}
	return s
}

// secretPath is the path of a file that holds a secret; literal is the key for the
// secret itself.
func (d *decoder) secretPath(n *node, literal string) (Credential, bool) {
	s, ok := d.line(n)
	if ok && looksSecret(s) {
		d.errorOn(n, "no path of a file", "write the file's path; a secret itself goes into "+literal)
		ok = false
	}
	return FileCredential(s, d.dir), ok
}

var requestLogTable = &table[RequestLog]{
	path:  "request_log",
	empty: true,
	doc:   "The log of requests on disk, in state_dir.",
	keys: []key[RequestLog]{
		whole("keep", 10_000, 0, maxCount, "How many requests are kept, the newest; 0 = none.", func(l *RequestLog) *int { return &l.Keep }),
		whole("days", 7, 0, maxCount, "After how many days a request is deleted; 0 = never for its age.", func(l *RequestLog) *int { return &l.Days }),
		choice("bodies", Bodies, "Whose bodies are kept too, without secrets and up to 1 MiB each: those of failed attempts with their requests, or all. They hold what your users wrote.", func(l *RequestLog) *string { return &l.Bodies }),
	},
}

// Bodies are the words of request_log.bodies, the default first.
var Bodies = []string{"off", "failed", "all"}

func (d *decoder) requestLog(n *node) (l RequestLog) {
	requestLogTable.decode(d, n, &l)
	return l
}
