package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	leaseSpan = time.Minute // longer than a token takes to be renewed
	keepTime  = 10 * time.Second
	firstWait = 20 * time.Millisecond
	mostWait  = 500 * time.Millisecond
)

// keep has sign-ins to a server, as it is defined, in the database of a hub. Who changes
// one has a lease meanwhile, so that no two nodes spend one refresh token.
type keep struct {
	s   *Servers
	row func(at string) []byte // by which one is found, for an address of the server
}

// defined finds the sign-ins to a server by the digest of its definition.
func (s *Servers) defined(digest string) *keep {
	return &keep{s, func(at string) []byte { return row(digest, at) }}
}

var _ oauth.Keep = (*keep)(nil)

// row is the hash by which a server is found, at one of its addresses.
func row(digest, at string) []byte {
	sum := sha256.Sum256([]byte(digest + "\n" + at))
	return sum[:]
}

func label(user string, server []byte) seal.Label {
	return seal.Label{Owner: "sign-in/" + user, Name: hex.EncodeToString(server)}
}

// Read implements [oauth.Keep].
func (k *keep) Read(ctx context.Context, of oauth.Key) ([]byte, error) {
	return k.s.read(ctx, of.Principal, k.row(of.Server))
}

// read is what is kept, opened. What was sealed with a key that is gone, or is damaged, is
// gone too: then the person signs in anew.
func (s *Servers) read(ctx context.Context, user string, server []byte) ([]byte, error) {
	kept, err := s.o.DB.SignIns.Get(ctx, user, server)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.open(kept)
}

func (s *Servers) open(kept store.SignIn) ([]byte, error) {
	data, err := s.o.Sealer.Open(string(kept.Sealed), label(kept.UserID, kept.Server))
	if _, gone := errors.AsType[*seal.UnknownKeyError](err); gone || errors.Is(err, seal.ErrAltered) {
		return nil, nil
	}
	return data, err
}

// seal seals what others sent, who may have sent too much.
func (s *Servers) seal(data []byte, l seal.Label) (string, error) {
	if len(data) > seal.MaxValue {
		return "", fmt.Errorf("what was sent has %d bytes, more than the %d that are kept", len(data), seal.MaxValue)
	}
	return s.o.Sealer.Seal(data, l)
}

// Change implements [oauth.Keep].
func (k *keep) Change(ctx context.Context, of oauth.Key, edit func([]byte) ([]byte, error)) error {
	db, server := k.s.o.DB, k.row(of.Server)
	name := sha256.Sum256(append([]byte(of.Principal+"\n"), server...))
	lease, err := k.s.lease(ctx, "sign-in/"+hex.EncodeToString(name[:]))
	if err != nil {
		return err
	}
	defer func() {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer stop()
		_ = db.Leases.Release(end, lease) // else it ends by itself
	}()
	old, err := k.s.read(ctx, of.Principal, server)
	if err != nil {
		return err
	}
	next, err := edit(old)
	if err != nil {
		return err
	}
	// What was got has to be kept, also where who waits has gone.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer stop()
	sealed := ""
	if next != nil {
		if sealed, err = k.s.seal(next, label(of.Principal, server)); err != nil {
			return fmt.Errorf("seal a sign-in: %w", err)
		}
	}
	return db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Leases.Check(ctx, lease); err != nil {
			return err
		}
		if next == nil {
			return tx.SignIns.Delete(ctx, of.Principal, server)
		}
		return tx.SignIns.Put(ctx, store.SignIn{UserID: of.Principal, Server: server, Sealed: []byte(sealed), KeyID: k.s.o.Sealer.KeyID()})
	})
}

// lease waits for a lease, which is another's for no longer than it takes to ask for a token.
func (s *Servers) lease(ctx context.Context, name string) (store.Lease, error) {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		l, err := s.o.DB.Leases.Take(ctx, name, s.o.Node, leaseSpan)
		if !errors.Is(err, store.ErrHeld) {
			return l, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return store.Lease{}, context.Cause(ctx)
		}
	}
}
