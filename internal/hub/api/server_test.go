package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
)

type thing struct {
	Name string `json:"name"`
}

// server returns a server with one operation of each kind, and a function that sends
// a request as p.
func server(t *testing.T, fail error) func(p account.Principal, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	s := api.New(mux, api.Options{Log: slog.New(slog.DiscardHandler), Drafts: queue.New(1, 1)})
	api.Add(s, api.PublicOperation("open", "GET", "/open", "Open"), func(context.Context, *api.NoBody) (*api.Body[thing], error) {
		return api.BodyOf(thing{"<b>"}, fail)
	})
	api.Add(s, api.Operation("read", "GET", "/things", "Read"), func(_ context.Context, in *api.Paging) (*api.Body[api.ListBody[thing]], error) {
		return api.ListOf([]thing{{in.After}}, "next", fail)
	})
	api.Add(s, api.Operation("list-capabilities", "GET", "/capabilities", "List"), func(context.Context, *api.NoBody) (*api.NoBody, error) { return nil, fail })
	api.Add(s, api.WithCreated(api.Operation("say", "POST", "/things", "Create")), func(_ context.Context, in *struct{ Body thing }) (*api.CreatedBody[thing], error) {
		return api.CreatedAt("7", "things", in.Body, fail)
	})
	api.AddDraft(s, api.Operation("check-draft", "POST", "/draft", "Check"), func(_ context.Context, in *struct{ Body api.Draft }) (*api.Body[[]string], error) {
		var out []string
		for _, f := range in.Body.ToLibrary().Files {
			out = append(out, f.Path+"="+string(f.Data))
		}
		return api.BodyOf(api.NonNil(out), fail)
	})
	return func(p account.Principal, method, path, body string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(method, api.Prefix+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		ctx := account.NewContext(api.WithRequest(r.Context(), &api.Request{ID: "r1", HTTP: r}), p)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(ctx))
		return w
	}
}

var reader = account.Principal{User: "u1", Scopes: account.ScopeRead | account.ScopeWrite}

// problem returns the problem in a response.
func problem(t *testing.T, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return p
}

func TestOperations(t *testing.T) {
	send := server(t, nil)
	for _, tt := range []struct {
		p                  account.Principal
		method, path, body string
		status             int
		want               string // in the response
	}{
		{account.Principal{}, "GET", "/open", "", 200, `{"name":"<b>"}`},
		{account.Principal{}, "GET", "/things", "", 401, `"code":"sign_in"`},
		{account.Principal{}, "POST", "/things", `{"name":"x"}`, 401, `"code":"sign_in"`},
		{reader, "GET", "/things?after=a", "", 200, `{"items":[{"name":"a"}],"next":"next"}`},
		{reader, "GET", "/capabilities", "", 204, ""},
		{reader, "POST", "/things", `{"name":"x"}`, 201, `{"name":"x"}`},
		{reader, "POST", "/things", `{"name":7}`, 422, `"where":"body.name"`},
		{reader, "POST", "/things", `{`, 400, `"code":"malformed"`},
		{reader, "POST", "/draft", `{"files":[{"path":"a","text":"A"},{"path":"b","base64":"Qg=="},{"path":"c"}]}`, 200, `["a=A","b=B","c="]`},
		{reader, "POST", "/draft", `{"files":[{"path":"a","text":"A","base64":"Qg=="}]}`, 422, "has text and base64; send one of them"},
		{reader, "POST", "/draft", `{"files":[]}`, 200, `[]`},
	} {
		w := send(tt.p, tt.method, tt.path, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %s; want %d %s", tt.method, tt.path, w.Code, w.Body, tt.status, tt.want)
		}
	}
	if got := send(reader, "POST", "/things", `{"name":"x"}`).Header().Get("Location"); got != api.Prefix+"/things/7" {
		t.Errorf("created at %q", got)
	}
	w := send(account.Principal{}, "GET", "/things", "")
	if p := problem(t, w); p.Request != "r1" || p.Title != "Unauthorized" || p.Next == "" || w.Header().Get("WWW-Authenticate") != `Bearer realm="loadout"` {
		t.Errorf("a request without sign-in: %+v, %v", p, w.Header())
	}
}

// The scope mcp permits only the list of capabilities.
func TestScopeOfMCP(t *testing.T) {
	send := server(t, nil)
	only := account.Principal{User: "u1", Token: "t", Scopes: account.ScopeMCP}
	both := account.Principal{User: "u1", Token: "t", Scopes: account.ScopeMCP | account.ScopeRead}
	for _, tt := range []struct {
		p      account.Principal
		path   string
		status int
	}{{only, "/things", 403}, {only, "/capabilities", 204}, {both, "/things", 200}, {both, "/capabilities", 204}, {only, "/open", 200}} {
		if w := send(tt.p, "GET", tt.path, ""); w.Code != tt.status {
			t.Errorf("scopes %v, %s: %d %s", tt.p.Scopes.Names(), tt.path, w.Code, w.Body)
		}
	}
	if p := problem(t, send(only, "GET", "/things", "")); p.Code != "scope" || !strings.Contains(p.Next, "more scopes") {
		t.Errorf("problem %+v", p)
	}
	// An error names only the scopes that help.
	send = server(t, &account.DeniedError{Scopes: account.ScopeMCP | account.ScopeRead})
	if p := problem(t, send(reader, "GET", "/things", "")); p.Code != "scope" || p.Next != "use a token with the scope read" {
		t.Errorf("problem %+v", p)
	}
	if p := problem(t, send(reader, "GET", "/capabilities", "")); !strings.Contains(p.Next, "mcp") {
		t.Errorf("problem %+v", p)
	}
	send = server(t, &account.DeniedError{Scopes: account.ScopeMCP})
	if p := problem(t, send(reader, "GET", "/things", "")); !strings.Contains(p.Next, "mcp") {
		t.Errorf("an error without a scope is left: %+v", p)
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		{errors.New("open /secret: no such file"), 500, "internal", ""},
		{store.ErrNotFound, 404, "not_found", ""},
		{&account.DeniedError{Hidden: true}, 404, "not_found", ""},
		{&account.DeniedError{}, 403, "forbidden", ""},
		{&account.RateLimitError{RetryAfter: 90 * time.Second}, 429, "too_often", "90"},
		{context.Canceled, 503, "ended", "5"},
		{api.ErrTimeout, 504, "slow", ""},
		{errors.Join(&account.WeakPasswordError{}, &account.WeakPasswordError{}), 422, "invalid", ""},
	} {
		for _, path := range []string{"/open", "/things", "/capabilities"} {
			w := server(t, tt.err)(reader, "GET", path, "")
			p := problem(t, w)
			if w.Code != tt.status || p.Code != tt.code || p.Next == "" || p.Detail == "" || strings.Contains(w.Body.String(), "/secret") || w.Header().Get("Retry-After") != tt.retryAfter {
				t.Errorf("%v: %d %s, retry after %q", tt.err, w.Code, w.Body, w.Header().Get("Retry-After"))
			}
			if tt.code == "invalid" && len(p.Errors) != 2 {
				t.Errorf("not all invalid fields are listed: %+v", p.Errors)
			}
		}
		if w := server(t, tt.err)(reader, "POST", "/things", `{"name":"x"}`); w.Code != tt.status || w.Header().Get("Location") != "" {
			t.Errorf("POST, %v: %d, at %q", tt.err, w.Code, w.Header().Get("Location"))
		}
	}
}

// A body may have many bytes, but not many values.
func TestDraftWithManyValues(t *testing.T) {
	send := server(t, nil)
	files := func(n int) string {
		return `{"files":[` + strings.Repeat(`{"path":"a","text":"[{,\"[{,\\"},`, n) + `{"path":"z"}]}`
	}
	if w := send(reader, "POST", "/draft", files(1000)); w.Code != 200 {
		t.Errorf("1,001 files: %d %.200s", w.Code, w.Body)
	}
	w := send(reader, "POST", "/draft", files(60_000))
	if p := problem(t, w); w.Code < 400 || p.Detail != "the request has too many values" || len(p.Errors) > 0 {
		t.Errorf("60,001 files: %d %.200s", w.Code, w.Body)
	}
	big := `{"files":[{"path":"a","text":"` + strings.Repeat("x", 2<<20) + `"}]}`
	for range 3 { // the lane is free again each time
		if w := send(reader, "POST", "/draft", big); w.Code != 200 {
			t.Errorf("a large file: %d %.200s", w.Code, w.Body)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	long := strings.Repeat("k", store.MaxLabel)
	for header, want := range map[string]string{
		"": "", " plain ": "plain", `"quoted"`: "quoted", `"a\"b\\c"`: `a"b\c`, long: long, `"` + long + `"`: long, `a"b`: `a"b`,
		`"`: "-", `""`: "-", `"open`: "-", `"a"b"`: "-", `"a\b"`: "-", `"a\"`: "-", long + "k": "-", `"` + long + `k"`: "-", "\xff": "-", "\"\xff\"": "-",
	} {
		got, err := api.IdempotencyKey(header)
		if err != nil {
			got = "-"
			if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != 422 {
				t.Errorf("%q: %v", header, err)
			}
		}
		if got != want {
			t.Errorf("%.20q: %.20q, want %.20q", header, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	failed := errors.New("failed")
	one := thing{"one"}
	list, err := api.ValuesOf([]*thing{&one}, "n", nil)
	if err != nil || !slices.Equal(list.Body.Items, []thing{one}) || list.Body.Next != "n" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := api.ValuesOf([]*thing{&one}, "n", failed); list != nil || err != failed {
		t.Errorf("%+v, %v", list, err)
	}
	if api.OptionalTime(time.Time{}) != nil || !api.OptionalTime(time.Unix(1, 0)).Equal(time.Unix(1, 0)) {
		t.Error("OptionalTime")
	}
	if api.UserID(reader, "me") != "u1" || api.UserID(reader, "u2") != "u2" {
		t.Error("UserID")
	}
	if got := api.NonNil([]int(nil)); got == nil || len(got) > 0 {
		t.Error("NonNil of nil")
	}
	if got := api.NonNil([]int{1}); len(got) != 1 {
		t.Error("NonNil of a list")
	}
	r := httptest.NewRequest("GET", "http://hub.example/x", nil)
	for public, want := range map[string]string{"": "http://hub.example", "https://public.example": "https://public.example"} {
		if got := api.New(http.NewServeMux(), api.Options{Public: public}).Origin(r); got != want {
			t.Errorf("origin %s, want %s", got, want)
		}
	}
	if got := api.RequestFrom(context.Background()); got == nil || got.ID != "" {
		t.Errorf("request %+v", got)
	}
	if v := (&api.Request{ID: "x"}); api.RequestFrom(api.WithRequest(context.Background(), v)) != v {
		t.Error("the request is not in its context")
	}
}

// An MCP client learns how to authenticate, and a HEAD request gets no body.
func TestWriteProblem(t *testing.T) {
	s := api.New(http.NewServeMux(), api.Options{Log: slog.New(slog.DiscardHandler)})
	for _, tt := range []struct {
		method, path string
		err          error
		challenge    string
	}{
		{"POST", api.MCPPath, &account.DeniedError{SignIn: true}, `scope="mcp"`},
		{"POST", api.MCPPath, &account.DeniedError{Scopes: account.ScopeMCP}, `scope="mcp"`},
		{"POST", api.MCPPath, &account.DeniedError{}, ""},
		{"GET", "/api/v1/x", &account.DeniedError{SignIn: true}, `Bearer realm="loadout"`},
		{"GET", "/api/v1/x", &account.DeniedError{Scopes: account.ScopeRead}, ""},
		{"HEAD", "/api/v1/x", store.ErrNotFound, ""},
	} {
		w := httptest.NewRecorder()
		s.WriteProblem(w, httptest.NewRequest(tt.method, "http://hub.example"+tt.path, io.NopCloser(strings.NewReader("x"))), tt.err)
		if got := w.Header().Get("WWW-Authenticate"); (got == "") != (tt.challenge == "") || !strings.Contains(got, tt.challenge) {
			t.Errorf("%s %s, %v: challenge %q, want %q", tt.method, tt.path, tt.err, got, tt.challenge)
		}
		if (w.Body.Len() == 0) != (tt.method == "HEAD") || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %q of type %s", tt.method, tt.path, w.Body, w.Header().Get("Content-Type"))
		}
	}
	if !api.IsHidden(store.ErrNotFound) || !api.IsHidden(&account.DeniedError{}) || api.IsHidden(errors.New("x")) || api.IsHidden(nil) {
		t.Error("IsHidden")
	}
}
