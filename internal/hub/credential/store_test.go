package credential

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestGet(t *testing.T) {
	address := storetest.SQLite(t)
	db := storetest.Open(t, address)
	cipher, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	s := Store{DB: db, Cipher: cipher}
	ctx := t.Context()
	put := func(user, name, value string) {
		t.Helper()
		owner := string(agents.NamespaceOwner(store.UserNamespace(user)))
		text, err := cipher.Encrypt([]byte(value), encryption.Label{Owner: owner, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: name, Encrypted: []byte(text), KeyID: cipher.KeyID()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []store.User{{ID: "ada", Name: "Ada"}, {ID: "eve", Name: "Eve", Disabled: true}} {
		if _, err := db.Users.Create(ctx, u); err != nil {
			t.Fatal(err)
		}
		put(u.ID, Name("git.example.com"), "me:token")
	}
	put("gone", Name("git.example.com"), "me:token")
	for _, tt := range []struct{ user, host, want string }{
		{"ada", "git.example.com", "me:token"},
		{"ada", "GIT.example.com", "me:token"},
		{"ada", "other.example.com", ""},
		{"ada", "a..b", ""},             // no secret can be for this host
		{"bob", "git.example.com", ""},  // has none
		{"eve", "git.example.com", ""},  // is disabled
		{"gone", "git.example.com", ""}, // was deleted
	} {
		c, err := s.Get(ctx, account.UserID(tt.user), tt.host)
		if err != nil || (c == nil) != (tt.want == "") || c != nil && c.User+":"+c.Password != tt.want {
			t.Errorf("%s for %s: %+v, %v, want %q", tt.user, tt.host, c, err, tt.want)
		}
	}
	// A value that another key encrypted, and an unreadable database, are errors that
	// name the secret.
	fails := func(what string) {
		t.Helper()
		if c, err := s.Get(ctx, "ada", "git.example.com"); c != nil || err == nil || !strings.HasPrefix(err.Error(), "read secret git_git_example_com: ") {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	if s.Cipher, err = encryption.New(encryption.NewKey()); err != nil {
		t.Fatal(err)
	}
	fails("another key")
	s.Cipher = cipher
	storetest.DropTable(t, address, "users")
	fails("without users")
	storetest.DropTable(t, address, "secrets")
	fails("without secrets")
}
