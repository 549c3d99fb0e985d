package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A repeated request gets its recorded response only as long as its user has the
// permissions of the first time and may read what it created.
func TestRepetitionChecksAccess(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	cipher, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s := api.New(mux, api.Options{Log: slog.New(slog.DiscardHandler), Requests: api.Requests{DB: db, Cipher: cipher}})
	executed := 0
	api.Add(s, api.WithCreated(api.Operation("create", "POST", "/things", "Create")), func(_ context.Context, in *struct{ Body thing }) (*api.CreatedBody[thing], error) {
		executed++
		return api.CreatedAt("7", "things", in.Body, nil)
	})
	var unreadable error
	var asked account.Principal
	api.Add(s, api.Operation("read", "GET", "/things/{id}", "Read"), func(ctx context.Context, in *struct {
		ID string `path:"id"`
	}) (*api.Body[thing], error) {
		asked = account.FromContext(ctx)
		return api.BodyOf(thing{in.ID}, unreadable)
	})
	const maintainer, reporter = account.Maintainer, account.Reporter
	post := func(key string, p account.Principal) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest("POST", api.Prefix+"/things", strings.NewReader(`{"name":"x"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		p.User, p.Scopes = "u1", account.ScopeWrite
		ctx := account.NewContext(api.WithRequest(r.Context(), &api.Request{HTTP: r}), p)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(ctx))
		return w
	}
	groups := func(role account.Role) map[account.GroupID]account.Role {
		return map[account.GroupID]account.Role{"g": role}
	}
	for _, tt := range []struct {
		name         string
		before, then account.Principal
		unreadable   error
		status       int
		code         string
	}{
		{"the same user", account.Principal{Groups: groups(reporter)}, account.Principal{Groups: groups(reporter)}, nil, 201, ""},
		{"with another role", account.Principal{Groups: groups(reporter)}, account.Principal{Groups: groups(maintainer)}, nil, 201, ""},
		{"with a lower role", account.Principal{Groups: groups(maintainer)}, account.Principal{Groups: groups(reporter)}, nil, 409, "key_hidden"},
		{"outside the group", account.Principal{Groups: groups(reporter)}, account.Principal{}, nil, 409, "key_hidden"},
		{"still an administrator", account.Principal{Admin: true}, account.Principal{Admin: true}, nil, 201, ""},
		{"no administrator any more", account.Principal{Admin: true}, account.Principal{}, nil, 409, "key_hidden"},
		{"the item is gone", account.Principal{}, account.Principal{}, store.ErrNotFound, 409, "key_hidden"},
		{"the item cannot be read now", account.Principal{}, account.Principal{}, store.ErrBusy, 503, "unavailable"},
		{"too many requests", account.Principal{}, account.Principal{}, &account.RateLimitError{}, 503, "unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			executed, unreadable = 0, nil
			key := strings.ReplaceAll(tt.name, " ", "-")
			if w := post(key, tt.before); w.Code != 201 {
				t.Fatalf("first: %d %s", w.Code, w.Body)
			}
			unreadable = tt.unreadable
			w := post(key, tt.then)
			if w.Code != tt.status || executed != 1 {
				t.Fatalf("again: %d %s, executed %d times", w.Code, w.Body, executed)
			}
			if tt.code != "" {
				if p := problem(t, w); p.Code != tt.code {
					t.Errorf("problem %s, want %s", p.Code, tt.code)
				}
				return
			}
			if w.Header().Get("Location") != api.Prefix+"/things/7" || !strings.Contains(w.Body.String(), `"x"`) {
				t.Errorf("again: %v %s", w.Header(), w.Body)
			}
			if asked.User != "u1" || asked.Scopes != account.AllScopes { // a token may have the scope to write only
				t.Errorf("read as %+v", asked)
			}
		})
	}
}
