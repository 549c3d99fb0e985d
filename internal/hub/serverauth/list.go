package serverauth

import (
	"context"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/store"
)

// UserSignIn is a user's sign-in to an MCP server. The server may have changed
// since then, or the user may have lost access to it.
type UserSignIn struct {
	ID     string
	Server string // address of the server; "" if the stored tokens cannot be read
	Status
}

// List returns the principal's sign-ins.
func (s *Servers) List(ctx context.Context, p account.Principal) ([]UserSignIn, error) {
	if err := account.Check(p, account.SecretList, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	all, err := s.o.DB.SignIns.ListByUser(ctx, string(p.User))
	if err != nil {
		return nil, err
	}
	out := make([]UserSignIn, len(all))
	for i, kept := range all {
		if out[i], err = s.describe(kept); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Servers) describe(kept store.SignIn) (UserSignIn, error) {
	m := UserSignIn{ID: hex.EncodeToString(kept.Server), Status: Status{State: Ended, Since: kept.Started}}
	data, err := s.decrypt(kept)
	if err != nil || data == nil {
		return m, err
	}
	var now oauth.Status
	if m.Server, now, m.Info = oauth.NewStore(nil, kept.UserID).Inspect(data); now == oauth.SignedIn {
		m.State = SignedIn
	}
	return m, nil
}

// Forget deletes a sign-in by its ID, even if its server no longer exists. Like
// [Servers.SignOut], it revokes the tokens if possible, and reports whether it did.
// It fails with [store.ErrNotFound] if the sign-in does not exist.
func (s *Servers) Forget(ctx context.Context, p account.Principal, id string) (revoked bool, err error) {
	if err := authorize(p); err != nil {
		return false, err
	}
	server, err := hex.DecodeString(id)
	if err != nil {
		return false, store.ErrNotFound
	}
	kept, err := s.o.DB.SignIns.Get(ctx, string(p.User), server)
	if err != nil {
		return false, err
	}
	m, err := s.describe(kept)
	if err != nil {
		return false, err
	}
	if m.Server == "" {
		err = s.o.DB.SignIns.Delete(ctx, string(p.User), server)
	} else { // allow only public addresses, because the owner of the server is unknown
		st := oauth.NewStore(&tokenStore{s, func(string) []byte { return server }}, string(p.User)).PublicOnly(s.o.Private)
		_, revoked, err = st.Logout(ctx, m.Server)
	}
	if err != nil {
		return false, err
	}
	return revoked, s.appendAudit(ctx, p, signOut, urlHost(m.Server), "allowed", map[string]any{"revoked": revoked, "since": m.Since.UTC().Format(time.RFC3339)})
}

// urlHost returns the host in a URL, for the audit log. Other parts of the URL may
// contain secrets.
func urlHost(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}
