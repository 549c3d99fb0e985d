package serverauth_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// people creates the users of the tests.
func people(t *testing.T, db *store.DB) {
	t.Helper()
	for _, name := range []string{"ada", "bob"} {
		if _, err := db.Users.Create(t.Context(), store.User{ID: name, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

func servers(t *testing.T, db *store.DB, keys ...encryption.Key) *serverauth.Servers {
	t.Helper()
	sealer, err := encryption.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return serverauth.New(serverauth.Options{DB: db, Cipher: sealer, Node: rand.Text()})
}

func TestStoreInDatabase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		people(t, db)
		key := encryption.NewKey()
		oauthtest.TestStorage(t, func() oauth.Storage { return servers(t, db, key).Keep("sha256:1") }) // each a node
	})
}

func TestStoredTokensAreEncrypted(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	people(t, db)
	ctx, key := t.Context(), encryption.NewKey()
	of := oauth.Key{Principal: "ada", Server: "https://a.example.com/mcp"}
	k := servers(t, db, key).Keep("sha256:1")
	if err := k.Change(ctx, of, func([]byte) ([]byte, error) { return []byte("access-token"), nil }); err != nil {
		t.Fatal(err)
	}
	rows, err := db.SignIns.ListByUser(ctx, "ada")
	if err != nil || len(rows) != 1 || bytes.Contains(rows[0].Encrypted, []byte("access")) {
		t.Fatalf("stored:  %q, %v", rows, err)
	}
	for name, other := range map[string]oauth.Storage{"as it is defined otherwise": servers(t, db, key).Keep("sha256:2"), "with another key": servers(t, db, encryption.NewKey()).Keep("sha256:1")} {
		if got, err := other.Read(ctx, of); got != nil || err != nil {
			t.Errorf("%s it reads %q, %v", name, got, err)
		}
	}
	moved := rows[0]
	moved.UserID = "bob"
	if err := db.SignIns.Put(ctx, moved); err != nil {
		t.Fatal(err)
	}
	of.Principal = "bob"
	if got, err := k.Read(ctx, of); err != nil || got != nil { // signs in again
		t.Errorf("a row of another user is read as %q, %v", got, err)
	}
}

// An outage of the database is reported as that of the hub, and with no details.
func TestUnreachableDatabase(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	k := servers(t, db, encryption.NewKey()).Keep("sha256:1")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(fmt.Errorf("dial 10.0.0.1: %w", store.ErrUnavailable))
	of := oauth.Key{Principal: "ada", Server: "https://a.example.com/mcp"}
	_, read := k.Read(ctx, of)
	change := k.Change(ctx, of, func(old []byte) ([]byte, error) { return old, nil })
	for _, err := range []error{read, change} {
		if !errors.Is(err, store.ErrUnavailable) || err.Error() != "hub database cannot be reached" {
			t.Errorf("the error is %v", err)
		}
	}
}

// What is too much is refused without a word of whose it is.
func TestStoredSizeLimit(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	people(t, db)
	of := oauth.Key{Principal: "ada", Server: "https://a.example.com/mcp"}
	k := servers(t, db, encryption.NewKey()).Keep("sha256:1")
	err := k.Change(t.Context(), of, func([]byte) ([]byte, error) { return make([]byte, encryption.MaxValue+1), nil })
	if err == nil || strings.Contains(err.Error(), "ada") || !strings.Contains(err.Error(), "tokens too large") {
		t.Errorf("the error is %v", err)
	}
	if got, err := k.Read(t.Context(), of); got != nil || err != nil {
		t.Errorf("it reads %q, %v", got, err)
	}
}
