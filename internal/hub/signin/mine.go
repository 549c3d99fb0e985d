package signin

import (
	"context"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/store"
)

// Mine is one of the sign-ins of somebody. Its server may be gone by now, be defined
// differently, or be out of his reach.
type Mine struct {
	ID     string
	Server string // its address, "" where what is kept cannot be read
	Standing
}

// Mine returns where somebody is signed in.
func (s *Servers) Mine(ctx context.Context, p account.Principal) ([]Mine, error) {
	if err := account.Check(p, account.SecretList, account.Of(p.User)); err != nil {
		return nil, err
	}
	all, err := s.o.DB.SignIns.Of(ctx, string(p.User))
	if err != nil {
		return nil, err
	}
	out := make([]Mine, len(all))
	for i, kept := range all {
		if out[i], err = s.mine(kept); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Servers) mine(kept store.SignIn) (Mine, error) {
	m := Mine{ID: hex.EncodeToString(kept.Server), Standing: Standing{State: Ended, Since: kept.Began}}
	data, err := s.open(kept)
	if err != nil || data == nil {
		return m, err
	}
	var now oauth.Standing
	if m.Server, now, m.Granted = oauth.NewStore(nil, kept.UserID).Of(data); now == oauth.SignedIn {
		m.State = SignedIn
	}
	return m, nil
}

// Forget is [Servers.SignOut] of a sign-in by its ID, whatever became of its server. One
// that is not there is [store.ErrNotFound].
func (s *Servers) Forget(ctx context.Context, p account.Principal, id string) (revoked bool, err error) {
	if err := may(p); err != nil {
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
	m, err := s.mine(kept)
	if err != nil {
		return false, err
	}
	if m.Server == "" {
		err = s.o.DB.SignIns.Delete(ctx, string(p.User), server)
	} else { // whose server it was is not known: public addresses are asked only
		st := oauth.NewStore(&keep{s, func(string) []byte { return server }}, string(p.User)).Bounded(s.o.Private)
		_, revoked, err = st.Logout(ctx, m.Server)
	}
	if err != nil {
		return false, err
	}
	return revoked, s.note(ctx, p, signOut, hostOf(m.Server), "allowed", map[string]any{"revoked": revoked, "since": m.Since.UTC().Format(time.RFC3339)})
}

// hostOf is what the audit log has of an address, which may have secrets behind it.
func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}
