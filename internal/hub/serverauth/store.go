package serverauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	leaseSpan    = time.Minute     // longer than it takes to refresh a token
	storeTimeout = 5 * time.Second // shorter than a server's health check, which would otherwise blame the server
	minWait      = 20 * time.Millisecond
	maxWait      = 500 * time.Millisecond
)

// tokenStore stores the OAuth tokens for a server in the database. It holds a lease
// during each change, so that no two nodes use the same refresh token.
type tokenStore struct {
	s   *Servers
	key func(at string) []byte // returns the row key for an address of the server
}

// newTokenStore returns the store for the server definition with the given digest.
func (s *Servers) newTokenStore(digest string) *tokenStore {
	return &tokenStore{s, func(at string) []byte { return rowKey(digest, at) }}
}

var _ oauth.Storage = (*tokenStore)(nil)

// rowKey returns a hash that identifies an address of a server definition in the
// database.
func rowKey(digest, at string) []byte {
	sum := sha256.Sum256([]byte(digest + "\n" + at))
	return sum[:]
}

func signInLabel(user string, server []byte) encryption.Label {
	return encryption.Label{Owner: "sign-in/" + user, Name: hex.EncodeToString(server)}
}

// Read implements [oauth.Storage].
func (k *tokenStore) Read(ctx context.Context, of oauth.Key) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(ctx, storeTimeout, store.ErrUnavailable)
	defer stop()
	data, err := k.s.readSignIn(ctx, of.Principal, k.key(of.Server))
	return data, hubError(err)
}

// hubError makes an error about an unreachable database mention the hub,
// because users see it among the errors of MCP servers. It returns other errors
// unchanged.
func hubError(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("hub %w", store.ErrUnavailable)
	}
	return err
}

// readSignIn returns a user's decrypted tokens. It returns nil if they are damaged
// or encrypted with an unknown key, so that the user signs in again.
func (s *Servers) readSignIn(ctx context.Context, user string, server []byte) ([]byte, error) {
	kept, err := s.o.DB.SignIns.Get(ctx, user, server)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.decrypt(kept)
}

func (s *Servers) decrypt(kept store.SignIn) ([]byte, error) {
	data, err := s.o.Cipher.Decrypt(string(kept.Encrypted), signInLabel(kept.UserID, kept.Server))
	if _, gone := errors.AsType[*encryption.UnknownKeyError](err); gone || errors.Is(err, encryption.ErrAltered) {
		return nil, nil
	}
	return data, err
}

// encrypt encrypts a user's tokens. It returns an error if they are too large,
// which can happen because the server determines their size.
func (s *Servers) encrypt(data []byte, l encryption.Label) (string, error) {
	if len(data) > encryption.MaxValue {
		return "", fmt.Errorf("tokens too large (%d bytes, limit %d)", len(data), encryption.MaxValue)
	}
	return s.o.Cipher.Encrypt(data, l)
}

// Change implements [oauth.Storage].
func (k *tokenStore) Change(ctx context.Context, of oauth.Key, edit func([]byte) ([]byte, error)) error {
	db, server := k.s.o.DB, k.key(of.Server)
	name := sha256.Sum256(append([]byte(of.Principal+"\n"), server...))
	lease, err := k.s.acquireLease(ctx, "sign-in/"+hex.EncodeToString(name[:]))
	if err != nil {
		return hubError(err)
	}
	defer func() {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer stop()
		_ = db.Leases.Release(end, lease) // if this fails, the lease expires
	}()
	old, err := k.s.readSignIn(ctx, of.Principal, server)
	if err != nil {
		return hubError(err)
	}
	next, err := edit(old)
	if err != nil {
		return err
	}
	// Store the new tokens even if the caller has cancelled, because the old
	// refresh token may no longer be valid.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer stop()
	sealed := ""
	if next != nil {
		if sealed, err = k.s.encrypt(next, signInLabel(of.Principal, server)); err != nil {
			return fmt.Errorf("encrypt sign-in: %w", err)
		}
	}
	return hubError(db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Leases.Check(ctx, lease); err != nil {
			return err
		}
		if next == nil {
			return tx.SignIns.Delete(ctx, of.Principal, server)
		}
		return tx.SignIns.Put(ctx, store.SignIn{UserID: of.Principal, Server: server, Encrypted: []byte(sealed), KeyID: k.s.o.Cipher.KeyID()})
	}))
}

// acquireLease waits until it acquires a lease. Other nodes hold the lease only
// while they request a token.
func (s *Servers) acquireLease(ctx context.Context, name string) (store.Lease, error) {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		l, err := s.o.DB.Leases.Acquire(ctx, name, s.o.Node, leaseSpan)
		if !errors.Is(err, store.ErrLeaseHeld) {
			return l, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return store.Lease{}, context.Cause(ctx)
		}
	}
}
