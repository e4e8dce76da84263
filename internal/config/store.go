package config

var storeTable = &table[Store]{
	path:     "store",
	together: oneOfKeys("oneOf", "url", "url_env"),
	doc:      "A store that several processes share for freezes. Sessions need none: where they go is computed. It has no effect yet.",
	keys: []key[Store]{
		custom(Key{Name: "url", Type: "redis URL", Doc: "Where the store is: redis:// or rediss://, with user and password if it wants them.", form: urlForm(false, "redis", "rediss"), Secret: true}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.URL, func() (Credential, bool) {
				text, ok := d.secret(n)
				return LiteralCredential(text.Reveal()), ok && d.storeURL(n)
			})
		}),
		custom(Key{Name: "url_env", Type: "name of a variable", Doc: "The environment variable that holds url.", form: variableForm()}, func(d *decoder, n *node, s *Store) {
			d.oneCredential(n, &s.URL, func() (Credential, bool) { return d.variable(n) })
		}),
		text("prefix", "understudy:", "What every key in the store begins with.", func(s *Store) *string { return &s.Prefix }),
	},
}

func (d *decoder) store(n *node) *Store {
	if n == nil {
		return nil
	}
	s := &Store{}
	if n.kind == kindNull {
		d.wrongType(n, "a mapping")
		return s
	}
	given := storeTable.decode(d, n, s)
	if given["url"] == nil && given["url_env"] == nil && n.kind == kindMap {
		d.errorAt(outerStart(n), "url is missing", "add url or url_env")
	}
	return s
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
