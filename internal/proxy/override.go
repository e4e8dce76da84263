package proxy

import (
	"slices"
	"strings"
)

// overrides are the headers, in lower case and with hyphens, by which servers and their
// frameworks take a request for one of another method, or of another path: Google's and
// Microsoft's, and what IIS and PHP's frameworks know.
var overrides = []string{"x-http-method-override", "x-http-method", "x-method-override", "http-method-override", "x-original-method", "x-original-url", "x-rewrite-url"}

// overrideParameters are the parameters of a query or a form for the same, beside the
// headers' names: Google's, Salesforce's, and that of Rails, Symfony and Laravel.
var overrideParameters = append([]string{"$httpMethod", "httpMethod", "_HttpMethod", "_method"}, overrides...)

// disguised says whether some server may take the request for another one than its line
// says: by a header, in the query, or in a body that is a form, or that is read as one.
func (q *request) disguised() bool {
	for name := range q.header {
		// Servers that know headers as variables read "_" as "-".
		if slices.Contains(overrides, strings.ToLower(strings.ReplaceAll(name, "_", "-"))) {
			return true
		}
	}
	if overridden(q.query) || q.form() && overridden(string(q.body)) {
		return true
	}
	if q.doc == nil {
		return false
	}
	_, found := q.doc.Raw("_method") // of a multipart form; Laravel looks in JSON too
	return found
}

// overridden says whether one of a query's parameters overrides the method.
func overridden(query string) bool {
	for part := range queryParts(query) {
		for _, name := range overrideParameters {
			if _, ok := anyParameter(part, name); ok {
				return true
			}
		}
	}
	return false
}

// form says whether the body says it is a form that is written like a query, which JSON
// may be, too.
func (q *request) form() bool {
	media, _, _ := strings.Cut(field(q.header, "Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded")
}
