package packages_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func sortFiles(files []sandbox.File) {
	slices.SortFunc(files, func(a, b sandbox.File) int { return cmp.Compare(a.Path, b.Path) })
}

// fake is a registry on the loopback interface that counts requests.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	files map[string][]byte                   // by path
	page  map[string]func(base string) []byte // made when asked for
}

func newFake(t *testing.T) *fake {
	f := &fake{asked: map[string]int{}, files: map[string][]byte{}, page: map[string]func(string) []byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.URL.Path]++
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "credentials", http.StatusBadRequest)
		return
	}
	if data, ok := f.files[r.URL.Path]; ok {
		w.Write(data)
		return
	}
	if make, ok := f.page[r.URL.Path]; ok {
		data := make(f.URL)
		w.Header().Set("Content-Type", http.DetectContentType(data))
		if bytes.HasPrefix(data, []byte("{")) {
			w.Header().Set("Content-Type", "application/json")
		}
		w.Write(data)
		return
	}
	http.NotFound(w, r)
}

func (f *fake) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.asked {
		n += c
	}
	return n
}

func (f *fake) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[path]
}

// wheel adds a package to a simple index (PEP 503).
func (f *fake) wheel(name, version string, data []byte) (path string) {
	file := fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)
	path = "/files/" + file
	f.files[path] = data
	f.simple(name, func(base string) string { return base + path + "#sha256=" + sum(data) }, file)
	return path
}

func (f *fake) simple(name string, link func(base string) string, file string) {
	f.page["/simple/"+name+"/"] = func(base string) []byte {
		return []byte("<!DOCTYPE html><html><body><a href=\"" + link(base) + "\">" + file + "</a></body></html>")
	}
}

func (f *fake) index() string { return f.URL + "/simple" }

// member is a file of an archive.
type member struct {
	name, text string
	link       bool // text is the target of a symbolic link
}

// makeWheel returns a handmade wheel (PEP 427).
func makeWheel(name, version string, members ...member) []byte {
	info := name + "-" + version + ".dist-info/"
	members = append(members,
		member{name: info + "METADATA", text: "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"},
		member{name: info + "WHEEL", text: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"})
	var record strings.Builder
	for _, m := range members {
		h := sha256.Sum256([]byte(m.text))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.name, base64.RawURLEncoding.EncodeToString(h[:]), len(m.text))
	}
	members = append(members, member{name: info + "RECORD", text: record.String() + info + "RECORD,,\n"})
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Store}
		h.SetMode(0o644)
		if m.link {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		w.Write([]byte(m.text))
	}
	z.Close()
	return b.Bytes()
}

// greeting returns a wheel that prints a text.
func greeting(text string) []byte {
	return makeWheel("greeting", "1.0", member{name: "greeting/__init__.py", text: "def text():\n    return " + fmt.Sprintf("%q", text) + "\n"})
}

// module adds a package to an npm registry.
func (f *fake) module(name, version, manifest string, members ...member) (path string) {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for _, m := range append([]member{{name: "package/package.json", text: manifest}}, members...) {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, m.text, 0
		}
		tw.WriteHeader(h)
		if !m.link {
			tw.Write([]byte(m.text))
		}
	}
	tw.Close()
	gz.Close()
	path = "/" + name + "/-/" + name + "-" + version + ".tgz"
	f.files[path] = b.Bytes()
	shasum := sha1.Sum(b.Bytes())
	f.page["/"+name] = func(base string) []byte {
		var v map[string]any
		if err := json.Unmarshal([]byte(manifest), &v); err != nil {
			panic(err)
		}
		v["dist"] = map[string]any{"tarball": base + path, "shasum": hex.EncodeToString(shasum[:])}
		doc, _ := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]any{"latest": version}, "versions": map[string]any{version: v}})
		return doc
	}
	return path
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
