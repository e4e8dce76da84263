package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
)

// TestBill: the bill of materials can be read back, and names for every artifact
// with a program its sum and every module that Go says is in it.
func TestBill(t *testing.T) {
	release := made(t)
	text := release.named(t, ".spdx.json").Data
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if doc.CreationInfo.Created != "2026-11-30T04:05:06Z" {
		t.Errorf("made at %s", doc.CreationInfo.Created)
	}
	urls, names := map[string]string{}, map[string]string{} // by element
	sums := map[string]string{}
	for _, p := range doc.Packages {
		id := string(p.PackageSPDXIdentifier)
		if urls[id]+names[id] != "" {
			t.Errorf("two elements %s", id)
		}
		names[id] = p.PackageFileName
		for _, c := range p.PackageChecksums {
			if c.Algorithm == "SHA256" {
				sums[p.PackageFileName] = c.Value
			}
		}
		for _, ref := range p.PackageExternalReferences {
			urls[id] = ref.Locator
		}
	}
	holds := map[string][]string{}
	for _, r := range doc.Relationships {
		if r.Relationship == "DEPENDS_ON" {
			from := names[string(r.RefA.ElementRefID)]
			holds[from] = append(holds[from], urls[string(r.RefB.ElementRefID)])
		}
	}
	for _, a := range release.list {
		if a.Binary == nil {
			continue
		}
		if sums[a.Name] != a.SHA256() {
			t.Errorf("%s: the sum is %q", a.Name, sums[a.Name])
		}
		var want []string
		for _, m := range a.Binary.Info.Deps {
			want = append(want, "pkg:golang/"+m.Path+"@"+strings.ReplaceAll(m.Version, "+", "%2B"))
		}
		want = append(want, "pkg:golang/stdlib@"+strings.TrimPrefix(a.Binary.Info.GoVersion, "go"))
		slices.Sort(want)
		slices.Sort(holds[a.Name])
		if len(want) < 20 || !slices.Equal(holds[a.Name], want) {
			t.Errorf("%s holds %v, want %v", a.Name, holds[a.Name], want)
		}
	}
}

// TestProvenance: the statement names every file of the release but itself and the
// sums, with the sum that it has, and the commit it was built from.
func TestProvenance(t *testing.T) {
	release := made(t)
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   map[string]any `json:"externalParameters"`
				ResolvedDependencies []struct {
					URI    string            `json:"uri"`
					Digest map[string]string `json:"digest"`
				} `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
			RunDetails struct {
				Builder  struct{ ID string }
				Metadata any
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(release.named(t, ".intoto.json").Data, &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("%s about %s", statement.Type, statement.PredicateType)
	}
	told := map[string]string{}
	for _, s := range statement.Subject {
		told[s.Name] = s.Digest["sha256"]
	}
	for _, a := range release.list {
		want := a.SHA256()
		if a.Name == sumsName || strings.HasSuffix(a.Name, ".intoto.json") {
			want = ""
		}
		if told[a.Name] != want {
			t.Errorf("%s: %q, want %q", a.Name, told[a.Name], want)
		}
	}
	d := statement.Predicate.BuildDefinition
	if d.ExternalParameters["version"] != "1.2.3" || d.ResolvedDependencies[0].Digest["gitCommit"] != sample.Commit || d.ResolvedDependencies[0].URI != "git+"+sample.Repository {
		t.Errorf("%+v", d)
	}
	for _, m := range d.ResolvedDependencies[1:] {
		if len(m.Digest["dirHash"]) != 64 && !strings.HasPrefix(m.URI, "pkg:golang/stdlib@") {
			t.Errorf("%s has no sum", m.URI)
		}
	}
	if run := statement.Predicate.RunDetails; run.Builder.ID != sample.Builder || run.Metadata != nil {
		t.Errorf("%+v", run)
	}
}

// TestManagers: formula and manifest point to the archives, by their names and sums.
func TestManagers(t *testing.T) {
	release := made(t)
	formula, manifest := string(release.named(t, formulaName).Data), release.named(t, scoopName).Data
	for _, b := range release.binaries {
		a := archives(release.list)[b.Target]
		if b.Target.OS == "windows" {
			continue
		}
		if want := "url \"" + sample.Repository + "/releases/download/v1.2.3/" + a.Name + "\"\n      sha256 \"" + a.SHA256() + "\"\n"; !strings.Contains(formula, want) {
			t.Errorf("the formula has no %s:\n%s", want, formula)
		}
	}
	var scoop struct {
		Version      string
		Bin          string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal(manifest, &scoop); err != nil {
		t.Fatal(err)
	}
	for _, b := range release.binaries {
		if b.Target.OS != "windows" {
			continue
		}
		zip, arch := archives(release.list)[b.Target], map[string]string{"amd64": "64bit", "arm64": "arm64"}[b.Target.Arch]
		if got := scoop.Architecture[arch]; got.URL != sample.Download(zip.Name) || got.Hash != zip.SHA256() {
			t.Errorf("%s: %+v", arch, got)
		}
	}
	if scoop.Version != "1.2.3" || scoop.Bin != "understudy.exe" {
		t.Errorf("%+v", scoop)
	}
}

func TestLinks(t *testing.T) {
	for text, want := range map[string]string{
		"see [x](docs/a.md#b)":       "see [x](https://git.example.com/o/understudy/blob/v1.2.3/docs/a.md#b)",
		"![x](docs/images/a.png)":    "![x](https://git.example.com/o/understudy/blob/v1.2.3/docs/images/a.png)",
		"[LICENSE](LICENSE)":         "[LICENSE](https://git.example.com/o/understudy/blob/v1.2.3/LICENSE)",
		"[x](https://example.com/a)": "[x](https://example.com/a)",
		"[x](#here)":                 "[x](#here)",
	} {
		if got := string(absoluteLinks([]byte(text), sample)); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
}
