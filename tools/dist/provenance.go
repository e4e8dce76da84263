package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// provenance is an in-toto statement about the release, with an SLSA v1 predicate:
// which files, from which commit and modules, built how. It is unsigned; cosign
// attest-blob --statement signs it as it is. It holds no wall time, so that whoever
// builds the commit again gets the same statement.
func provenance(r Release, list []Artifact) ([]byte, error) {
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	for _, a := range list {
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: a.Name, Digest: map[string]string{"sha256": a.SHA256()}})
	}
	predicate, err := predicateOf(r, list)
	if err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	if statement.Predicate, err = asStruct(predicate); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	return plainJSON(statement)
}

func predicateOf(r Release, list []Artifact) (*slsa.Provenance, error) {
	var systems []any
	var compiler string
	sources := map[string]*intoto.ResourceDescriptor{}
	for _, a := range list {
		if a.Binary == nil {
			continue
		}
		compiler = a.Binary.Info.GoVersion
		if system := a.Binary.Target.String(); !slices.Contains(systems, any(system)) {
			systems = append(systems, system)
		}
		for _, p := range parts(a.Binary) {
			d := &intoto.ResourceDescriptor{Name: p.path, Uri: p.url()}
			if sum := p.dirHash(); sum != "" {
				d.Digest = map[string]string{"dirHash": sum}
			}
			sources[p.url()] = d
		}
	}
	external, err := structpb.NewStruct(map[string]any{"version": r.Version, "repository": r.Repository, "commit": r.Commit, "targets": systems})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{"go": compiler, "flags": anys(flags(r)), "environment": map[string]any{"CGO_ENABLED": "0", "GOAMD64": "v1", "GOARM64": "v8.0"}})
	if err != nil {
		return nil, err
	}
	definition := &slsa.BuildDefinition{BuildType: r.Repository + "/blob/" + r.Tag() + "/docs/install.md#what-is-in-a-release", ExternalParameters: external, InternalParameters: internal,
		ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: "git+" + r.Repository, Digest: map[string]string{"gitCommit": r.Commit}}}}
	urls := make([]string, 0, len(sources))
	for url := range sources {
		urls = append(urls, url)
	}
	slices.Sort(urls)
	for _, url := range urls {
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, sources[url])
	}
	return &slsa.Provenance{BuildDefinition: definition, RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: r.Builder}}}, nil
}

func anys(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// asStruct turns a message into the struct that a statement's predicate is.
func asStruct(m proto.Message) (*structpb.Struct, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	s := new(structpb.Struct)
	return s, protojson.Unmarshal(text, s)
}

// plainJSON writes a message with fields in a fixed order and white space of its own:
// protojson's own differs from one build of the library to the next, on purpose.
func plainJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var fields any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}
