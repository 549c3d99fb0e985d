package hubclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/hubclient"
	"github.com/loadout-dev/loadout/skill"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		address, token string
		code           int // 0 if the address is valid
	}{
		{"https://hub.example.com", "t", 0}, {"https://hub.example.com/base/", "t", 0}, {hubclient.DefaultAddress, "t", 0}, {"http://localhost:1", "t", 0}, {"http://hub.example.com", "", 0}, {"http://hub.example.com", " \n", 0},
		{"http://hub.example.com", "t", exit.Refused}, {"hub.example.com", "", exit.Usage}, {"ftp://hub.example.com", "", exit.Usage}, {"https://", "", exit.Usage}, {"https://hub.example.com?a=b", "", exit.Usage},
		{"https://hub.example.com#a", "", exit.Usage}, {"https://ann:secret@hub.example.com", "", exit.Usage}, {"https://%zz", "", exit.Usage},
	} {
		c, err := hubclient.New(tt.address, tt.token)
		e, failed := errors.AsType[*exit.Error](err)
		if failed != (tt.code != 0) || failed && (e.Code != tt.code || e.Hint == "" || strings.Contains(e.Error()+e.Hint, "secret")) {
			t.Errorf("%s: %v", tt.address, err)
		}
		if !failed && c.Address() != strings.TrimSuffix(tt.address, "/") {
			t.Errorf("%s: address %s", tt.address, c.Address())
		}
	}
}

func TestSend(t *testing.T) {
	var status int
	var kind, body string
	var got *http.Request
	var sent []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Location", "https://other.example/")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer s.Close()
	c, err := hubclient.New(s.URL+"/base", " t0ken\n")
	if err != nil {
		t.Fatal(err)
	}
	const problem, data = "application/problem+json", "application/json; charset=utf-8"
	for _, tt := range []struct {
		status     int
		kind, body string
		code       int
		err, hint  string
	}{
		{200, data, `{"a": 1}`, 0, "", ""},
		{200, data, `{"a": "x"}`, exit.Missing, "unknown response format", "loadout version"},
		{200, "text/html", "<p>", exit.Missing, "no hub at " + s.URL, "--hub"},
		{302, "text/html", "<p>", exit.Failure, "redirects to https://other.example/", "give that address"},
		{400, problem, `{"detail": "wrong", "next": "do this"}`, exit.Failure, "hub: wrong", "do this"},
		{400, problem, `{"detail": "wrong"}`, exit.Failure, "hub: wrong", "/openapi.json"},
		{401, problem, `{"detail": "who", "next": "do this"}`, exit.Refused, "hub: who", "LOADOUT_HUB_TOKEN"},
		{403, problem, `{"detail": "no", "next": "ask"}`, exit.Refused, "hub: no", "ask"},
		{404, problem, `{"detail": "none", "next": "look"}`, exit.NotFound, "hub: none", "look"},
		{500, problem, `{"detail": "failed", "next": "tell", "request": "r1"}`, exit.Failure, "hub: failed", "tell (request r1)"},
		{503, problem, `{"detail": "failed", "request": "r1"}`, exit.Failure, "hub: failed", "try again in a moment (request r1)"},
		{400, problem, `{"error": "another program"}`, exit.Missing, "no hub at", "--hub"},
		{404, data, "", exit.Missing, "no hub at", "--hub"},
	} {
		status, kind, body = tt.status, tt.kind, tt.body
		r, err := c.Send(t.Context(), "POST", "/apply", "application/yaml", []byte("kind: Ghost"))
		var out struct{ A int }
		if err == nil {
			err = r.Decode(&out)
		}
		if tt.code == 0 {
			if err != nil || out.A != 1 || r.Status != 200 {
				t.Errorf("%d %s: %+v, %v", tt.status, tt.body, out, err)
			}
			continue
		}
		if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != tt.code || !strings.Contains(e.Error(), tt.err) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%d %s: %v, %+v", tt.status, tt.body, err, e)
		}
	}
	if got.Method != "POST" || got.URL.Path != "/base/api/v1/apply" || got.Header.Get("Authorization") != "Bearer t0ken" || got.Header.Get("Content-Type") != "application/yaml" || string(sent) != "kind: Ghost" {
		t.Errorf("sent %s %s %v %q", got.Method, got.URL, got.Header, sent)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := c.Send(ctx, "GET", "/x", "", nil); !errors.Is(err, gone) {
		t.Errorf("cancelled: %v", err)
	}
	s.Close()
	if _, err := c.Send(t.Context(), "GET", "/x", "", nil); err == nil || !strings.Contains(err.Error(), "cannot reach the hub at "+s.URL+"/base: ") || strings.Contains(err.Error(), "api/v1") {
		t.Errorf("no server: %v", err)
	}
}

func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := file("a.yaml", "\ufeffkind: A\nx: 1\n"), file("b.json", `{"kind": "B"}`)
	directive := file("c.yaml", "%YAML 1.2\n---\nkind: C\n")
	d, err := hubclient.ReadDocuments([]string{a, b, "-", directive}, strings.NewReader("kind: D\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "kind: A\nx: 1\n\n...\n---\n" + `{"kind": "B"}` + "\n...\n---\nkind: D\n\n...\n%YAML 1.2\n---\nkind: C\n"; string(d.Text) != want || d.Kind != "application/yaml" {
		t.Errorf("%s: %q, want %q", d.Kind, d.Text, want)
	}
	lines := strings.Split(string(d.Text), "\n")
	for name, want := range map[string]hubclient.Change{
		"kind: A": {File: a, Line: 1}, "x: 1": {File: a, Line: 2}, `{"kind": "B"}`: {File: b, Line: 1}, "kind: D": {File: "standard input", Line: 1}, "kind: C": {File: directive, Line: 3},
	} {
		for i, line := range lines {
			if line != name {
				continue
			}
			c := hubclient.Change{Line: i + 1, Findings: []skill.Diagnostic{{Line: i + 1}, {Line: 0}}}
			d.Locate(&c)
			if c.File != want.File || c.Line != want.Line || c.Findings[0].Line != want.Line || c.Findings[1].Line != 0 || c.Diff == nil {
				t.Errorf("%s: %+v, want %+v", name, c, want)
			}
		}
	}
	none := hubclient.Change{}
	if d.Locate(&none); none.File != a || none.Line != 0 || none.Findings == nil {
		t.Errorf("a change without a line: %+v", none)
	}
	if d, err := hubclient.ReadDocuments([]string{b}, nil); err != nil || d.Kind != "application/json" {
		t.Errorf("one JSON file: %+v, %v", d, err)
	}
	limit := strings.Repeat("#", 1<<20)
	if _, err := hubclient.ReadDocuments([]string{file("limit.yaml", limit)}, nil); err != nil {
		t.Error(err)
	}
	for name, files := range map[string][]string{"larger than": {file("large.yaml", limit+"#")}, "has no documents": {file("empty.yaml", " \n")}, "given twice": {"-", "-"}, "none.yaml": {filepath.Join(dir, "none.yaml")}, "read ": {dir}, "standard input has no documents": {"-"}} {
		in := "kind: D\n"
		if strings.HasPrefix(name, "standard") {
			in = ""
		}
		if _, err := hubclient.ReadDocuments(files, strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, c := range map[string]hubclient.Change{
		"Ghost/team/x": {Kind: "Ghost", Namespace: "team", Name: "x"}, "Ghost/x": {Kind: "Ghost", Name: "x"}, "Ghost (a.yaml:3)": {Kind: "Ghost", File: "a.yaml", Line: 3}, "(a.yaml:1)": {File: "a.yaml"},
	} {
		if got := c.Title(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
