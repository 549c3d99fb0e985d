// Package page contains the built web page and serves it. The sources are in the
// directory web; dist is in Git so that building the program needs no npm. The page
// is a client of the public API: this package does not depend on the hub. Start
// reading at [Site.OrElse].
package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/docs"
)

// pagePolicy is the content security policy of the web page. It permits only
// resources of the hub itself. Editors and diagrams need inline styles, which
// cannot load resources from other hosts either. [New] adds the hashes of the
// inline scripts of index.html.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// previewPolicy is the content security policy of preview.html, which shows a
// document of a conversation and runs its scripts. The document has its own origin,
// even if it is opened directly, and can load nothing, neither from the hub nor from
// other hosts. The policy of the page prevents its frame from navigating to another
// host. Chromium ignores webrtc, and connects to a host before it refuses to open its
// page in a frame, so scripts can still contact a server.
const previewPolicy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; " +
	"media-src data: blob:; connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; webrtc 'block'"

//go:embed all:dist
var dist embed.FS

// Files returns the built page: index.html and the files that it loads.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return files
}

// ownAssets is the directory of the page's own code, whose files have no hash in
// their names. In URLs, a hash of all these files replaces "page" in the path.
const ownAssets = "assets/page/"

// packedExt is the extension of files that the build compressed with gzip. Their
// URLs lack it.
const packedExt = ".gz"

// docsDir is the directory of the documentation in URLs. Its pages end in .md.
const docsDir = "docs/"

// Site serves the files of the web page and the documentation. For other paths that a browser opens, it
// serves index.html, which selects the view based on the path.
type Site struct {
	files     fs.FS
	ownPrefix string // path of ownAssets in URLs
	index     *asset
	policy    string // content security policy of index

	mu     sync.Mutex // guards the fields below
	packed map[string]*asset
}

// asset is a file of the page.
type asset struct {
	kind   string
	plain  []byte // nil if the program holds only packed
	packed []byte // compressed with gzip; nil if that saves nothing
}

// New returns a site with the files of a built page, see [Files]. It fails if
// index.html is missing.
func New(files fs.FS) (*Site, error) {
	s := &Site{files: files, packed: map[string]*asset{}}
	hash, err := hashDir(files, strings.TrimSuffix(ownAssets, "/"))
	if err != nil {
		return nil, fmt.Errorf("web page missing from this build: %w", err)
	}
	s.ownPrefix = "assets/" + hash + "/"
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, fmt.Errorf("web page missing from this build: %w", err)
	}
	s.policy = strings.Replace(pagePolicy, "script-src 'self'", "script-src 'self'"+inlineHashes(index), 1)
	s.index = &asset{kind: mimeType("index.html")}
	s.index.pack(bytes.ReplaceAll(index, []byte("/"+ownAssets), []byte("/"+s.ownPrefix)))
	return s, nil
}

var inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// inlineHashes returns the sources for a content security policy that permit
// exactly the inline scripts of a page.
func inlineHashes(index []byte) string {
	var out strings.Builder
	for _, m := range inlineScript.FindAllSubmatch(index, -1) {
		hash := sha256.Sum256(m[1])
		fmt.Fprintf(&out, " 'sha256-%s'", base64.StdEncoding.EncodeToString(hash[:]))
	}
	return out.String()
}

// hashDir returns a short hash of the names and contents of the files in dir.
func hashDir(files fs.FS, dir string) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		hash.Write(data)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}

// asset returns a file of the page. It compresses each file once.
func (s *Site) asset(name string) (*asset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.packed[name]; a != nil {
		return a, nil
	}
	files, in := s.files, name
	if doc, ok := strings.CutPrefix(name, docsDir); ok {
		files, in = docs.Files, doc
	}
	a := &asset{kind: mimeType(name)}
	if packed, err := fs.ReadFile(files, in+packedExt); err == nil {
		a.packed = packed
	} else if plain, err := fs.ReadFile(files, in); err == nil {
		a.pack(plain)
	} else {
		return nil, err
	}
	s.packed[name] = a
	return a, nil
}

func mimeType(name string) string {
	switch path.Ext(name) {
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".woff2":
		return "font/woff2" // not every system knows it
	}
	return cmp.Or(mime.TypeByExtension(path.Ext(name)), "text/plain; charset=utf-8")
}

// pack sets the content.
func (a *asset) pack(data []byte) {
	a.plain = data
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // fails only for an invalid level
	w.Write(data)
	w.Close()
	if packed.Len() < len(data) {
		a.packed = packed.Bytes()
	}
}

// unpack returns the content.
func (a *asset) unpack() ([]byte, error) {
	if a.plain != nil {
		return a.plain, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(a.packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r) // the build made it, so its size is known
}

// serve serves a file of the page and reports whether it exists.
func (s *Site) serve(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if !fs.ValidPath(name) || name == "." || name == "index.html" || strings.HasPrefix(name, ownAssets) || path.Ext(name) == packedExt {
		return false
	}
	immutable := strings.HasPrefix(name, "assets/") // the path contains a hash
	if own, ok := strings.CutPrefix(name, s.ownPrefix); ok {
		name = ownAssets + own
	}
	a, err := s.asset(name)
	if err != nil {
		return false
	}
	if immutable {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "public, max-age=300")
	}
	if name == "preview.html" {
		w.Header().Set("X-Frame-Options", "SAMEORIGIN") // for browsers without frame-ancestors
		w.Header().Set("Content-Security-Policy", previewPolicy)
		w.Header().Set("X-DNS-Prefetch-Control", "off")
	}
	a.send(w, r)
	return true
}

// serveIndex serves index.html.
func (s *Site) serveIndex(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", s.policy)
	w.Header().Set("Cache-Control", "no-cache")
	s.index.send(w, r)
}

func (a *asset) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Add("Vary", "Accept-Encoding")
	data := a.packed
	if data != nil && AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
	} else {
		var err error
		if data, err = a.unpack(); err != nil {
			http.Error(w, "this build of the page is damaged: "+err.Error(), http.StatusInternalServerError)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method == http.MethodHead {
		return
	}
	io.Copy(w, bytes.NewReader(data))
}

// AcceptsGzip reports whether a client accepts responses compressed with gzip.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" {
			weight, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q="), 64)
			return params == "" || err == nil && weight > 0
		}
	}
	return false
}

// IsPageRequest reports whether a request comes from a browser that is opening
// a page.
func IsPageRequest(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// notPages lists the first elements of paths that are not pages. Error responses
// for such paths are meant for programs.
var notPages = map[string]bool{"api": true, "mcp": true, "ws": true, "assets": true, ".well-known": true, "metrics": true, "healthz": true, "readyz": true, "openapi.json": true}

// OrElse returns a handler that serves the web page to browsers and calls next for
// other clients.
func (s *Site) OrElse(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			next(w, r)
		case s.serve(w, r):
		case IsPageRequest(r) && !notPages[first]:
			s.serveIndex(w, r)
		default:
			next(w, r)
		}
	}
}
