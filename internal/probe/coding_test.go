package probe

import (
	"slices"
	"testing"
)

func TestCodingsOf(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   []string
		known  bool
	}{
		{nil, nil, true},
		{[]string{""}, nil, true},
		{[]string{"identity"}, nil, true},
		{[]string{" GZip "}, []string{"gzip"}, true},
		{[]string{"gzip, identity,, zstd"}, []string{"gzip", "zstd"}, true},
		{[]string{"gzip", "br"}, []string{"gzip", "br"}, true},
		{[]string{"dcb"}, []string{"dcb"}, false},
		{[]string{"gzip, dcb"}, []string{"gzip", "dcb"}, false},
		{[]string{"br,br,br,br,br"}, []string{"br", "br", "br", "br", "br"}, false},
	} {
		if got := codingsOf(c.header); !slices.Equal(got, c.want) || decodable(got) != c.known {
			t.Errorf("%q: %q, decodable %v", c.header, got, decodable(got))
		}
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		accept  []string
		codings []string
		want    bool
	}{
		{nil, nil, true},
		{nil, []string{"gzip"}, false},
		{[]string{"gzip"}, []string{"gzip"}, true},
		{[]string{"deflate", "gzip;q=0.1"}, []string{"gzip"}, true},
		{[]string{"gzip; Q=0.000"}, []string{"gzip"}, false},
		{[]string{"gzip;q=oops"}, []string{"gzip"}, false},
		{[]string{"*"}, []string{"br"}, true},
		{[]string{"*;q=0"}, []string{"br"}, false},
		{[]string{"*, br;q=0"}, []string{"br"}, false},
		{[]string{"br;q=0", "*"}, []string{"br"}, false},
		{[]string{"*;q=0, br"}, []string{"br"}, true},
		{[]string{"gzip"}, []string{"x-gzip"}, true},
		{[]string{"x-gzip"}, []string{"gzip"}, true},
		{[]string{"gzip"}, []string{"gzip", "br"}, false},
		{[]string{"gzip, br"}, []string{"gzip", "br"}, true},
	} {
		if got := allows(c.accept, c.codings); got != c.want {
			t.Errorf("%q allows %q: %v", c.accept, c.codings, got)
		}
	}
}
