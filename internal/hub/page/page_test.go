package page_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/page"
)

const browserAccept = "text/html,application/xhtml+xml,*/*;q=0.8"

// get requests a path of the site with header values.
func get(t *testing.T, site *page.Site, path string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	site.OrElse(http.NotFound)(w, r)
	return w.Result()
}

func readBody(t *testing.T, res *http.Response) string {
	t.Helper()
	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func unpack(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return data
}

func newSite(t *testing.T, files fs.FS) *page.Site {
	t.Helper()
	site, err := page.New(files)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

var ownPrefix = regexp.MustCompile(`/(assets/[0-9a-f]{16}/)\w+\.js`)

// prefixOf returns the directory in the URLs of the page's own files.
func prefixOf(t *testing.T, site *page.Site) string {
	t.Helper()
	index := readBody(t, get(t, site, "/", map[string]string{"Accept": browserAccept}))
	m := ownPrefix.FindStringSubmatch(index)
	if m == nil || strings.Contains(index, "/assets/page/") {
		t.Fatalf("index.html does not load its files from a directory with a hash:\n%s", index)
	}
	return m[1]
}

func TestSecurityPolicyAllowsOnlyTheInlineScriptsOfTheBuild(t *testing.T) {
	res := get(t, newSite(t, page.Files()), "/", map[string]string{"Accept": browserAccept})
	policy, index := res.Header.Get("Content-Security-Policy"), readBody(t, res)
	scripts := "script-src 'self'"
	for _, m := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(index, -1) {
		hash := sha256.Sum256([]byte(m[1]))
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	}
	for _, want := range []string{"default-src 'none'", scripts + ";", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q does not contain %s", policy, want)
		}
	}
	if inline := regexp.MustCompile(`\son[a-z]+=|javascript:`).FindString(index); inline != "" {
		t.Errorf("index.html contains the inline script %q", inline)
	}
	if got := res.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control of index.html = %q, want no-cache", got)
	}
}

func TestInlineScriptIsPermittedByItsHash(t *testing.T) {
	site := newSite(t, fstest.MapFS{
		"index.html":           {Data: []byte("<script>theme()</script>")},
		"assets/page/index.js": {Data: []byte("x")},
	})
	policy := get(t, site, "/", map[string]string{"Accept": browserAccept}).Header.Get("Content-Security-Policy")
	// The hash was computed with openssl.
	if want := "script-src 'self' 'sha256-Rfr3GgHZFiXm+TmNr+li+0sZ4J9FGllo8jsXcJF5XZ8=';"; !strings.Contains(policy, want) {
		t.Errorf("policy %q does not contain %s", policy, want)
	}
}

// The document in a preview gets nothing but its own content, and only the page may
// show it in a frame.
func TestPreviewHasItsOwnPolicy(t *testing.T) {
	res := get(t, newSite(t, page.Files()), "/preview.html", map[string]string{"Accept": browserAccept})
	policy := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"sandbox allow-scripts;", "default-src 'none';", "connect-src 'none';", "form-action 'none';", "frame-ancestors 'self';"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q does not contain %s", policy, want)
		}
	}
	for _, bad := range []string{"allow-same-origin", "allow-top-navigation", "allow-popups", "http", "'self' ", "*"} {
		if strings.Contains(policy, bad) {
			t.Errorf("policy %q contains %s", policy, bad)
		}
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" || res.Header.Get("X-Frame-Options") != "SAMEORIGIN" {
		t.Errorf("the response is %d with %v", res.StatusCode, res.Header)
	}
}

func TestEachBuiltFileIsServed(t *testing.T) {
	site := newSite(t, page.Files())
	prefix := prefixOf(t, site)
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
	err := fs.WalkDir(page.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "index.html" {
			return err
		}
		want, err := fs.ReadFile(page.Files(), name)
		if err != nil {
			return err
		}
		url := "/" + strings.Replace(name, "assets/page/", prefix, 1)
		if packed, ok := strings.CutSuffix(name, ".gz"); ok { // the build compressed it
			if res := get(t, site, url, nil); res.StatusCode != http.StatusNotFound {
				t.Errorf("status of %s = %d, want 404", name, res.StatusCode)
			}
			name, url, want = packed, strings.TrimSuffix(url, ".gz"), unpack(t, want)
		}
		for _, coding := range []string{"identity", "gzip"} {
			if got := readBody(t, get(t, site, url, map[string]string{"Accept-Encoding": coding})); got != string(want) {
				t.Errorf("%s has %d bytes with %s, want %d", name, len(got), coding, len(want))
			}
		}
		res := get(t, site, url, nil)
		if kind, ok := kinds[path.Ext(name)]; ok && res.Header.Get("Content-Type") != kind {
			t.Errorf("Content-Type of %s = %s, want %s", name, res.Header.Get("Content-Type"), kind)
		}
		if immutable := strings.Contains(res.Header.Get("Cache-Control"), "immutable"); immutable != strings.HasPrefix(name, "assets/") {
			t.Errorf("Cache-Control of %s = %q", name, res.Header.Get("Cache-Control"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreNotCompressedForClientsWithoutGzip(t *testing.T) {
	site := newSite(t, page.Files())
	for _, coding := range []string{"identity", "gzip;q=0", "gzip; q=0.0", "br"} {
		res := get(t, site, "/icon.svg", map[string]string{"Accept-Encoding": coding})
		if got := res.Header.Get("Content-Encoding"); got != "" {
			t.Errorf("with Accept-Encoding %q, Content-Encoding = %q", coding, got)
		}
	}
}

func TestChangedFileChangesTheURLsOfThePage(t *testing.T) {
	files := fstest.MapFS{
		"index.html":           {Data: []byte(`<script type="module" src="/assets/page/index.js"></script>`)},
		"assets/page/index.js": {Data: []byte(`import "./shared.js"`)},
		"assets/page/a.js":     {Data: []byte("1")},
	}
	before := prefixOf(t, newSite(t, files))
	if again := prefixOf(t, newSite(t, files)); again != before {
		t.Errorf("the same files have the prefixes %s and %s", before, again)
	}
	files["assets/page/a.js"] = &fstest.MapFile{Data: []byte("2")}
	site := newSite(t, files)
	after := prefixOf(t, site)
	if after == before {
		t.Errorf("the prefix %s stays when a file changes", before)
	}
	for path, want := range map[string]int{
		"/" + after + "a.js": 200, "/" + before + "a.js": 404, "/assets/page/a.js": 404, "/" + after + "b.js": 404, "/" + after: 404,
	} {
		if res := get(t, site, path, map[string]string{"Accept": "*/*"}); res.StatusCode != want {
			t.Errorf("status of %s = %d, want %d", path, res.StatusCode, want)
		}
	}
}

// The documentation is served as text; a browser that opens one of its pages gets the
// web page, which renders it.
func TestDocumentationIsServed(t *testing.T) {
	site := newSite(t, page.Files())
	for name, want := range map[string]string{"web.md": "# The web page", "zh/web.md": "# 网页", "mcp.md": "MCP"} {
		res := get(t, site, "/docs/"+name, nil)
		if got := readBody(t, res); res.StatusCode != 200 || !strings.Contains(got, want) || res.Header.Get("Content-Type") != "text/markdown; charset=utf-8" {
			t.Errorf("%s: %d %s %.40q", name, res.StatusCode, res.Header.Get("Content-Type"), got)
		}
	}
	for _, name := range []string{"web_test.go", "files.go", "../go.mod", "nothing.md"} {
		if res := get(t, site, "/docs/"+name, nil); res.StatusCode != 404 {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	if res := get(t, site, "/docs/web", map[string]string{"Accept": browserAccept}); !strings.Contains(readBody(t, res), "<html") {
		t.Error("a browser that opens /docs/web does not get the web page")
	}
}
