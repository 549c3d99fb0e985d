package hub_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/web"
)

// requestInfo asks for a path as a browser does.
func requestInfo(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := http.DefaultTransport.RoundTrip(req) // unpacks nothing that it did not ask for
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

const browsers = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestPageIsWherePeopleGo(t *testing.T) {
	n := start(t, hub.Options{})
	for _, test := range []struct {
		path, accept string
		status       int
		page         bool
	}{
		{"/", browsers, 200, true},
		{"/library", browsers, 200, true},
		{"/chat/some-id", browsers, 200, true},
		{"/library/some.id", browsers, 200, true},
		{"/", "*/*", 200, false}, // as curl
		{"/library", "*/*", 404, false},
		{"/api/v1/nothing", browsers, 404, false},
		{"/assets/nothing.js", browsers, 404, false},
		{"/.well-known/nothing", browsers, 404, false},
	} {
		res, body := requestInfo(t, n.URL+test.path, test.accept)
		if page := strings.Contains(body, `<div id="app">`); res.StatusCode != test.status || page != test.page {
			t.Errorf("%s for %s: %d, the page: %v; want %d, %v", test.path, test.accept, res.StatusCode, page, test.status, test.page)
		}
	}
}

func TestPolicyOfThePage(t *testing.T) {
	n := start(t, hub.Options{})
	res, body := requestInfo(t, n.URL+"/", browsers)
	policy := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not say %s", policy, want)
		}
	}
	if inline := regexp.MustCompile(`<script[^>]*>[^<]|\son[a-z]+=|javascript:`).FindString(body); inline != "" {
		t.Errorf("the page has the inline script %q", inline)
	}
	if res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the page is kept: %q", res.Header.Get("Cache-Control"))
	}
}

// Each file that was built is served whole, of its kind, packed where a client takes that.
func TestFilesOfThePage(t *testing.T) {
	n := start(t, hub.Options{})
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	err := fs.WalkDir(web.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "index.html" {
			return err
		}
		want, err := fs.ReadFile(web.Files(), name)
		if err != nil {
			return err
		}
		res := packed(t, n.URL+"/"+name, "gzip")
		defer res.Body.Close()
		body := res.Body
		if res.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(body); err != nil {
				return err
			}
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		if kind, ok := kinds[path.Ext(name)]; ok && res.Header.Get("Content-Type") != kind {
			t.Errorf("%s is %s, want %s", name, res.Header.Get("Content-Type"), kind)
		}
		if forever := strings.Contains(res.Header.Get("Cache-Control"), "immutable"); forever != strings.HasPrefix(name, "assets/") {
			t.Errorf("%s: Cache-Control is %q", name, res.Header.Get("Cache-Control"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, coding := range []string{"identity", "gzip;q=0", "gzip; q=0.0", "br"} {
		res := packed(t, n.URL+"/theme.js", coding)
		res.Body.Close()
		if got := res.Header.Get("Content-Encoding"); got != "" {
			t.Errorf("who takes %s gets %s", coding, got)
		}
	}
}

// packed asks for a file, and takes it packed as it says.
func packed(t *testing.T, url, coding string) *http.Response {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", coding)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
