package oauth_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
)

// memory is a storage with one sign-in. Its reads fail with err.
type memory struct {
	data []byte
	err  error
}

func (m *memory) Read(context.Context, oauth.Key) ([]byte, error) { return m.data, m.err }

func (m *memory) Change(_ context.Context, _ oauth.Key, edit func([]byte) ([]byte, error)) error {
	data, err := edit(m.data)
	if err == nil {
		m.data = data
	}
	return err
}

// The status of a stored sign-in is that of its data, and data that cannot be read is
// of no server.
func TestInspect(t *testing.T) {
	issuer := oauthtest.New(t)
	server := issuer.Serve(t)
	m := &memory{}
	s := oauth.NewStore(m, "me")
	if status, info, err := s.Status(t.Context(), server); status != oauth.None || info != nil || err != nil {
		t.Errorf("before the sign-in: %s, %+v, %v", status, info, err)
	}
	login(t, s, server)
	status, info, err := s.Status(t.Context(), server)
	if status != oauth.SignedIn || err != nil || info == nil || info.Issuer != issuer.URL {
		t.Errorf("after the sign-in: %s, %+v, %v", status, info, err)
	}
	if of, now, shown := s.Inspect(m.data); of != server || now != oauth.SignedIn || shown == nil || shown.Issuer != issuer.URL {
		t.Errorf("inspected: %q, %s, %+v", of, now, shown)
	}
	for what, data := range map[string][]byte{"nothing": nil, "no JSON": []byte("{"), "empty": []byte("{}"), "a version to come": []byte(`{"version":99,"server":"` + server + `"}`)} {
		if of, now, shown := s.Inspect(data); of != "" || now != oauth.None || shown != nil {
			t.Errorf("%s: %q, %s, %+v", what, of, now, shown)
		}
	}
	if of, now, shown := oauth.NewStore(m, "you").Inspect(m.data); of != "" || now != oauth.None || shown != nil {
		t.Errorf("of another user: %q, %s, %+v", of, now, shown)
	}
	m.err = errors.New("disk on fire")
	if status, info, err := s.Status(t.Context(), server); status != oauth.None || info != nil || !errors.Is(err, m.err) {
		t.Errorf("unreadable: %s, %+v, %v", status, info, err)
	}
}
