package oauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A sign-in is stored only if its answer belongs to it and the token can be used.
func TestFinish(t *testing.T) {
	status, body := 200, ""
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer issuer.Close()
	const good = `{"access_token": "abc", "token_type": "Bearer", "refresh_token": "r", "scope": "a b"}`
	answer := func(pairs ...string) url.Values {
		v := url.Values{"state": {"s"}, "code": {"c"}, "iss": {issuer.URL}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	for _, tt := range []struct {
		name   string
		answer url.Values
		status int
		body   string
		want   string // in the error; "" if the sign-in succeeds
	}{
		{"good", answer(), 200, good, ""},
		{"without an issuer", answer("iss", ""), 200, good, "issuer"},
		{"another state", answer("state", "t"), 200, good, "state mismatch"},
		{"another issuer", answer("iss", "https://other.example"), 200, good, "other.example"},
		{"denied", answer("error", "access_denied"), 200, good, "sign-in denied: access_denied"},
		{"refused code", answer(), 400, `{"error": "invalid_grant"}`, "invalid_grant"},
		{"no JSON", answer(), 200, "<p>", ""},
		{"another token type", answer(), 200, `{"access_token": "abc", "token_type": "mac"}`, "unsupported token type"},
		{"a token that is no header", answer(), 200, `{"access_token": "a b", "token_type": "Bearer"}`, "invalid characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body = tt.status, tt.body
			s := NewStore(FileStorage(t.TempDir()), "me")
			a := &Attempt{State: "s", Server: issuer.URL + "/mcp", Issuer: issuer.URL, ReportsIssuer: true, TokenURL: issuer.URL + "/token", ClientID: "client", Private: true, Verifier: strings.Repeat("v", 43)}
			info, err := s.Finish(t.Context(), a, tt.answer)
			g, readErr := s.read(t.Context(), a.Server)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tt.name == "good" {
				if err != nil || info == nil || g == nil || g.Access != "abc" || g.Refresh != "r" || strings.Join(g.Scopes, " ") != "a b" {
					t.Errorf("%+v, stored %+v, %v", info, g, err)
				}
				return
			}
			if err == nil || info != nil || g != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, stored %+v, %v", info, g, err)
			}
			if _, issuer := errors.AsType[*IssuerError](err); issuer != strings.Contains(tt.name, "issuer") {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
}
