package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote"
)

func TestCredentialNames(t *testing.T) {
	for host, want := range map[string]string{
		"github.com":                 "git_github_com",
		"GitHub.com":                 "git_github_com",
		"git-hub.com":                "git_git__hub_com",
		"git.example.com:8443":       "git_git_example_com___8443",
		"xn--bcher-kva.example":      "git_xn____bcher__kva_example",
		"127.0.0.1:80":               "git_127_0_0_1___80",
		"a_b.example":                "", // it would be a.b.example
		"a.-b.example":               "",
		"a-.b.example":               "",
		"a..b":                       "",
		"[::1]:443":                  "",
		"":                           "",
		strings.Repeat("a", 200):     "",
		"example.com/x":              "",
		"example.com\nauthorization": "",
	} {
		if got := credentialName(host); got != want {
			t.Errorf("the secret for %q is %q, want %q", host, got, want)
		}
	}
}

// The credential of one host is never that of another.
func TestCredentialNamesAreOfOneHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.StringMatching(`[ab1.:_-]{1,12}`)
		a, b := host.Draw(t, "a"), host.Draw(t, "b")
		if name := credentialName(a); a != b && name != "" && name == credentialName(b) {
			t.Errorf("%q and %q have the one name %s", a, b, name)
		}
	})
}

func TestReadCredential(t *testing.T) {
	for value, want := range map[string]remote.Credential{
		"token":         {Password: "token"},
		" token\n":      {Password: "token"},
		"ada:pass:word": {User: "ada", Password: "pass:word"},
	} {
		if got := *readCredential(value); got != want {
			t.Errorf("%q is read as %+v", value, got)
		}
	}
}

// Each error of a place is told with a code and what to do; that of this machine is not.
func TestProblemsOfSources(t *testing.T) {
	place := func(err error) error { return &library.SourceError{Err: fmt.Errorf("look at it: %w", err)} }
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{place(&remote.LocationError{Text: "x", Reason: "y"}), 422, "source_invalid"},
		{place(&remote.NotFoundError{What: "skill"}), 422, "source_not_found"},
		{place(&remote.DeniedError{Host: "github.com"}), 422, "source_denied"},
		{place(&remote.AddressError{Host: "x", Reason: "loopback"}), 422, "source_address"},
		{place(&remote.UntrustedError{Reason: "x"}), 422, "source_address"},
		{place(&remote.TooLargeError{What: "x", Limit: 1}), 422, "source_too_large"},
		{place(&remote.DigestError{Name: "x"}), 502, "source_digest"},
		{place(&remote.StatusError{URL: "x", Code: 503}), 502, "source_failed"},
		{place(remote.ErrNoGit), 501, "no_git"},
		{place(errors.New("connection refused")), 502, "source_failed"},
		{place(context.DeadlineExceeded), 504, "slow"},
		{place(context.Canceled), 503, "ended"},
		{place(errTimeout), 504, "slow"},
		{&library.InvalidError{Why: "it was uploaded"}, 422, "invalid"},
	} {
		p := problemOf(tt.err)
		if p == nil || p.Status != tt.status || p.Code != tt.code || p.Next == "" {
			t.Errorf("%v is told as %+v, want %d %s", tt.err, p, tt.status, tt.code)
		}
	}
	if p := problemOf(errors.New("open /x: no such file")); p != nil {
		t.Errorf("what is of this machine is told as %+v", p)
	}
}

// What was done before an import failed is said.
func TestUnfinishedImport(t *testing.T) {
	done := &library.ImportResult{Created: make([]library.ImportChange, 2), Updated: make([]library.ImportChange, 1)}
	p, ok := errors.AsType[*Problem](partialImport(done, errTimeout))
	if !ok || p.Code != "slow" || !strings.Contains(p.Detail, "2 skills were created and 1 updated") {
		t.Errorf("it is told as %+v", p)
	}
	if err := partialImport(&library.ImportResult{}, errTimeout); !errors.Is(err, errTimeout) {
		t.Errorf("where nothing was done it is %v", err)
	}
}

// deadlines remembers until when an answer may be written.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = at
	return nil
}

// An answer may be written for as long as an operation may take, and then a minute.
func TestLongOperationsHaveTheirTime(t *testing.T) {
	h, err := Open(t.Context(), Options{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct {
		method, path, body string
		most               time.Duration
	}{
		{"POST", "/api/v1/skills/import/look", `{"source": "./x"}`, importTimeout + responseTimeout},
		{"POST", "/api/v1/skills/update", `{}`, importTimeout + responseTimeout},
		{"GET", "/api/v1/defaults", "", responseTimeout},
	} {
		r := httptest.NewRequest(tt.method, "http://127.0.0.1"+tt.path, strings.NewReader(tt.body))
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		h.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusNotFound || w.last.Before(began.Add(tt.most)) || w.last.After(time.Now().Add(tt.most)) {
			t.Errorf("%s: status %d, and until %s after it began", tt.path, w.Code, w.last.Sub(began))
		}
	}
}
