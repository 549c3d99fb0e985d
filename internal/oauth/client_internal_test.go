package oauth

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

func TestPublicServersSendUsToPublicAddressesOnly(t *testing.T) {
	reached := false
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(private.Close)
	client, guard, err := newClient("https://mcp.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	guard.public = func() bool { return true }
	const want = "a public server may not send us there"
	if _, err := client.Get(private.URL + "/.well-known/oauth-authorization-server"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a request to a private address: %v, want %q", err, want)
	}
	if reached {
		t.Error("the private address was connected to")
	}
	page, err := url.Parse(private.URL + "/authorize")
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.check(t.Context(), page); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a page at a private address: %v, want %q", err, want)
	}
	guard.public = func() bool { return false }
	if res, err := client.Get(private.URL); err != nil || !reached {
		t.Errorf("from a private server: %v", err)
	} else {
		res.Body.Close()
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Repeat("a", maxBody+1))
	}))
	t.Cleanup(s.Close)
	client, _, err := newClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Get(s.URL + "/.well-known/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != maxBody {
		t.Errorf("%d bytes, %v; want %d", len(b), err, maxBody)
	}
}

// A form has a code or a token in it: it goes where it was sent and nowhere else.
func TestFormsAreNotSentOn(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the form was sent on") }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	client, _, err := newClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.PostForm(s.URL, url.Values{"code": {"x"}})
	if err != nil || res.StatusCode != http.StatusTemporaryRedirect {
		t.Fatalf("answered %v, %v", res, err)
	}
	res.Body.Close()
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"https://MCP.example.com:443/mcp#x": "https://mcp.example.com/mcp",
		"https://me:pass@example.com/":      "https://example.com",
		"http://127.0.0.1:80/mcp":           "http://127.0.0.1/mcp",
		"https://example.com:8443/a/?b=c":   "https://example.com:8443/a/?b=c",
		"wss://example.com/mcp":             "https://example.com/mcp",
	} {
		if got := canonical(in); got != want {
			t.Errorf("canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestErrorsAreCleaned(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Get", URL: "https://example.com/a?key=s3cret", Err: errors.New("refused")}, "example.com: refused"},
		{errors.New(`fetch "https://example.com/a?key=s3cret": bad`), `fetch "https://example.com/a": bad`},
		{&oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "no\n\x1b[2J", Body: []byte("s3cret")}, "the authorization server answers: invalid_grant: no  [2J"},
		{errors.New("failed: 500\nResponse: {\"access_token\": \"s3cret\"}"), "failed: 500"},
	} {
		if got := (cleaned{tt.err}).Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
