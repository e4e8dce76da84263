package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

const unsaid = "NOASSERTION"

// bill is the SPDX 2.3 document of a release: a package for each artifact with a
// program in it, one for each Go module that any of them holds, and one for Go's own
// library, as the programs themselves say. Modules are named by their package URL;
// their go.sum hash, which is no hash of a file, stands in the comment.
func bill(r Release, list []Artifact) ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "understudy-" + r.Version,
		CreationInfo: &spdx.CreationInfo{Created: r.Date.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "understudy-tools-dist"}}},
	}
	modules := map[string]*spdx.Package{} // by package URL
	all := sha256.New()
	for _, a := range list {
		if a.Binary == nil {
			continue
		}
		fmt.Fprintf(all, "%s %s\n", a.SHA256(), a.Name)
		id := elementID("Artifact", a.Name)
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: "understudy", PackageSPDXIdentifier: id, PackageVersion: r.Version, PackageFileName: a.Name,
			PackageSupplier: &common.Supplier{SupplierType: unsaid, Supplier: unsaid}, PackageDownloadLocation: r.Download(a.Name), IsFilesAnalyzedTagPresent: true,
			PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: a.SHA256()}, {Algorithm: common.SHA1, Value: sha1Of(a.Data)}},
			PackageHomePage:         r.Repository,
			PackageSourceInfo:       fmt.Sprintf("commit %s, built for %s by %s", r.Commit, a.Binary.Target, a.Binary.Info.GoVersion),
			PackageLicenseConcluded: licenceName, PackageLicenseDeclared: licenceName, PackageCopyrightText: unsaid,
			PrimaryPackagePurpose: "APPLICATION",
		})
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", string(id)), Relationship: "DESCRIBES"})
		for _, m := range parts(a.Binary) {
			p := modules[m.url()]
			if p == nil {
				p = m.element()
				modules[m.url()] = p
			}
			doc.Relationships = append(doc.Relationships, &spdx.Relationship{RefA: common.MakeDocElementID("", string(id)), RefB: common.MakeDocElementID("", string(p.PackageSPDXIdentifier)), Relationship: "DEPENDS_ON"})
		}
	}
	urls := make([]string, 0, len(modules))
	for url := range modules {
		urls = append(urls, url)
	}
	slices.Sort(urls)
	for _, url := range urls {
		doc.Packages = append(doc.Packages, modules[url])
	}
	doc.DocumentNamespace = "https://spdx.org/spdxdocs/understudy-" + r.Version + "-" + hex.EncodeToString(all.Sum(nil)[:16])
	if err := spdxlib.ValidateDocument(doc); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// A part is something that a program holds: a module, or Go's own library.
type part struct{ path, version, sum string }

// parts are what a program holds, sorted by path.
func parts(b *Binary) []part {
	list := []part{{path: "stdlib", version: strings.TrimPrefix(b.Info.GoVersion, "go")}}
	for _, m := range b.Info.Deps {
		list = append(list, partOf(m))
	}
	slices.SortFunc(list, func(a, b part) int { return strings.Compare(a.path, b.path) })
	return list
}

func partOf(m *debug.Module) part {
	if m.Replace != nil {
		m = m.Replace
	}
	return part{m.Path, m.Version, m.Sum}
}

// url is the part's package URL. Go's own library is "stdlib" there.
func (p part) url() string {
	return "pkg:golang/" + p.path + "@" + strings.ReplaceAll(p.version, "+", "%2B")
}

// dirHash is the go.sum hash as hex digits; "" where there is none.
func (p part) dirHash() string {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(sum)
}

func (p part) element() *spdx.Package {
	e := &spdx.Package{
		PackageName: p.path, PackageSPDXIdentifier: elementID("Module", p.path+"-"+p.version), PackageVersion: p.version,
		PackageDownloadLocation: unsaid, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: unsaid, PackageLicenseDeclared: unsaid, PackageCopyrightText: unsaid,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: "purl", Locator: p.url()}},
		PrimaryPackagePurpose:     "LIBRARY",
	}
	if p.sum != "" {
		e.PackageComment = "go.sum: " + p.sum
	}
	return e
}

// notInID are the runes that an SPDX identifier may not hold.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func elementID(kind, name string) common.ElementID {
	return common.ElementID(kind + "-" + strings.Trim(notInID.ReplaceAllString(name, "-"), "-"))
}
