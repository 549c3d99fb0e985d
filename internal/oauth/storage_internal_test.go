package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

var errBroken = errors.New("storage is broken")

// brokenStorage fails to read, or to change if reads work.
type brokenStorage struct {
	Storage
	reads bool
}

func (s brokenStorage) Read(ctx context.Context, k Key) ([]byte, error) {
	if s.reads {
		return s.Storage.Read(ctx, k)
	}
	return nil, errBroken
}

func (brokenStorage) Change(context.Context, Key, func([]byte) ([]byte, error)) error {
	return errBroken
}

// A failure of the storage is an error. It never looks like a user who is not signed
// in, or like one who has signed out.
func TestBrokenStorage(t *testing.T) {
	ctx := t.Context()
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"access_token":"new","token_type":"Bearer","refresh_token":"next","expires_in":3600}`))
	}))
	defer issuer.Close()
	server := issuer.URL + "/mcp"
	files := FileStorage(t.TempDir())
	old := &grant{Issuer: issuer.URL, TokenURL: issuer.URL + "/token", ClientID: "c", Access: "old", Refresh: "once", Expiry: time.Now().Add(-time.Hour), Private: true}
	if err := NewStore(files, "ada").write(ctx, server, old); err != nil {
		t.Fatal(err)
	}
	for _, reads := range []bool{false, true} {
		s := NewStore(brokenStorage{files, reads}, "ada")
		if found, revoked, err := s.Logout(ctx, server); !errors.Is(err, errBroken) || revoked {
			t.Errorf("reads %t: signed out: %t, %t, %v", reads, found, revoked, err)
		}
		if _, _, err := s.Status(ctx, server); errors.Is(err, errBroken) == reads {
			t.Errorf("reads %t: status %v", reads, err)
		}
		h := s.Handler(server, "sign in")
		source, err := h.TokenSource(ctx)
		if err == nil && source != nil {
			_, err = source.Token()
		}
		if _, ok := errors.AsType[*StorageError](err); !ok || !errors.Is(err, errBroken) {
			t.Errorf("reads %t: token %v, want a StorageError", reads, err)
		} else if got, want := err.Error(), "use stored sign-in: storage is broken; try again in a moment"; got != want {
			t.Errorf("reads %t: token %q, want %q", reads, got, want)
		}
	}
	refused := errors.New("refused")
	err := NewStore(files, "ada").change(ctx, server, func(*grant) (*grant, error) { return nil, refused })
	if _, ok := errors.AsType[*StorageError](err); ok || !errors.Is(err, refused) {
		t.Errorf("the error of an edit is %v, want no StorageError", err)
	}
	if now, _, err := NewStore(files, "ada").Status(ctx, server); err != nil || now == None {
		t.Errorf("the sign-in is %v, %v", now, err)
	}
}

// A sign-out revokes both tokens as the client is known to the issuer, and reports
// what was not revoked.
func TestRevoke(t *testing.T) {
	for name, tt := range map[string]struct {
		secret string
		style  oauth2.AuthStyle
		status int
		basic  bool
		form   string // client_secret in the form
	}{
		"a public client":        {"", 0, 200, false, ""},
		"a secret in the header": {"s", oauth2.AuthStyleInHeader, 200, true, ""},
		"a secret in the form":   {"s", oauth2.AuthStyleInParams, 200, false, "s"},
		"refused":                {"", 0, 400, false, ""},
	} {
		var forms []url.Values
		basic := false
		issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.ParseForm()
			forms = append(forms, r.PostForm)
			_, _, basic = r.BasicAuth()
			w.WriteHeader(tt.status)
		}))
		server := issuer.URL + "/mcp"
		s := NewStore(FileStorage(t.TempDir()), "ada")
		g := &grant{Issuer: issuer.URL, TokenURL: issuer.URL + "/token", RevocationURL: issuer.URL + "/revoke", ClientID: "c", ClientSecret: tt.secret, AuthStyle: tt.style, Access: "a", Refresh: "r", Private: true}
		if err := s.write(t.Context(), server, g); err != nil {
			t.Fatal(err)
		}
		found, revoked, err := s.Logout(t.Context(), server)
		if !found || revoked != (tt.status == 200) || err != nil || len(forms) != 2 {
			t.Fatalf("%s: %t, %t, %v, %d requests", name, found, revoked, err, len(forms))
		}
		for i, want := range []string{"refresh_token", "access_token"} {
			id := "c"
			if tt.basic {
				id = ""
			}
			if f := forms[i]; f.Get("token_type_hint") != want || f.Get("token") != want[:1] || f.Get("client_secret") != tt.form || f.Get("client_id") != id || basic != tt.basic {
				t.Errorf("%s: %v, basic %t", name, f, basic)
			}
		}
		if found, revoked, err := s.Logout(t.Context(), server); found || revoked || err != nil {
			t.Errorf("%s again: %t, %t, %v", name, found, revoked, err)
		}
		issuer.Close()
	}
}
