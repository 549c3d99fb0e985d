// Package packagestest serves Python packages that tests install.
package packagestest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// Index is a simple index (PEP 503) of wheels, served on the loopback
// interface.
type Index struct {
	URL string
	mux *http.ServeMux
}

// NewIndex starts an empty index, which is closed at the end of the test.
func NewIndex(t testing.TB) *Index {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return &Index{URL: s.URL + "/simple", mux: mux}
}

// Add adds a package with the given files. name must be a normalized name.
func (i *Index) Add(name, version string, files map[string]string) {
	inFile := strings.ReplaceAll(name, "-", "_")
	file := fmt.Sprintf("%s-%s-py3-none-any.whl", inFile, version)
	i.serve("/files/"+file, "application/zip", Wheel(inFile, version, files))
	i.serve("/simple/"+name+"/", "text/html", fmt.Appendf(nil, "<!DOCTYPE html><html><body><a href=%q>%s</a></body></html>", "/files/"+file, file))
}

func (i *Index) serve(path, mime string, data []byte) {
	i.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mime)
		w.Write(data)
	})
}

// Wheel returns a wheel (PEP 427) with the given files.
func Wheel(name, version string, files map[string]string) []byte {
	info := name + "-" + version + ".dist-info/"
	all := maps.Clone(files)
	all[info+"METADATA"] = "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	all[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	var record strings.Builder
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	write := func(name, text string) {
		w, err := z.Create(name)
		if err != nil {
			panic(err) // writing to memory does not fail
		}
		w.Write([]byte(text))
	}
	for _, p := range slices.Sorted(maps.Keys(all)) {
		h := sha256.Sum256([]byte(all[p]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", p, base64.RawURLEncoding.EncodeToString(h[:]), len(all[p]))
		write(p, all[p])
	}
	write(info+"RECORD", record.String()+info+"RECORD,,\n")
	z.Close()
	return b.Bytes()
}
