package users

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	networksSetting = "sign_in_networks" // name of a setting in a user's namespace
	networksFormat  = 1
	maxNetworks     = 32                   // networks per user; the least recently used is forgotten
	networkLifetime = 180 * 24 * time.Hour // time after the last sign-in until a network is forgotten
	networkTouch    = 7 * 24 * time.Hour   // minimum interval between recorded sign-ins
)

// signInNetworks holds the networks from which a user signed in, latest first.
type signInNetworks struct {
	Format   int             `json:"format"`
	Networks []signInNetwork `json:"networks"`
}

type signInNetwork struct {
	Hash string    `json:"hash"` // hash of the user and the network
	Seen time.Time `json:"seen"`
}

// KnowsNetwork reports whether the user with the given name signed in from a
// network before. It returns false if there is no such user.
func (s SignIns) KnowsNetwork(ctx context.Context, name string, network netip.Prefix) (bool, error) {
	row, err := s.b.db.Users.ByName(ctx, strings.ToLower(name))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	known, _, err := readNetworks(ctx, s.b.db.Settings, row.ID)
	return slices.ContainsFunc(known.Networks, isNetwork(row.ID, network)), err
}

// RememberNetwork records that a user signed in from a network, for
// [SignIns.KnowsNetwork]. Only a hash of the network is stored.
func (s SignIns) RememberNetwork(ctx context.Context, user account.UserID, network netip.Prefix) error {
	err := s.b.db.Tx(ctx, func(tx *store.Tx) error {
		known, generation, err := readNetworks(ctx, tx.Settings, string(user))
		if err != nil {
			return err
		}
		now := time.Now().UTC().Truncate(time.Second)
		i := slices.IndexFunc(known.Networks, isNetwork(string(user), network))
		if i >= 0 {
			if now.Sub(known.Networks[i].Seen) < networkTouch {
				return nil
			}
			known.Networks = slices.Delete(known.Networks, i, i+1)
		}
		known.Networks = slices.Insert(known.Networks, 0, signInNetwork{hashNetwork(string(user), network), now})
		known.Networks = known.Networks[:min(len(known.Networks), maxNetworks)]
		data, err := json.Marshal(known)
		if err != nil {
			return err
		}
		_, err = tx.Settings.Set(ctx, store.Setting{Scope: string(store.UserNamespace(string(user))), Name: networksSetting, Value: data, Generation: generation, UpdatedBy: string(user)})
		return err
	})
	if errors.Is(err, store.ErrConflict) { // another sign-in of the user; the next one records the network
		return nil
	}
	return err
}

// readNetworks returns a user's unexpired networks. It ignores data in a format
// written by a newer version.
func readNetworks(ctx context.Context, settings store.Settings, user string) (known signInNetworks, generation int64, err error) {
	row, err := settings.Get(ctx, string(store.UserNamespace(user)), networksSetting)
	if errors.Is(err, store.ErrNotFound) {
		return signInNetworks{Format: networksFormat}, 0, nil
	}
	if err != nil {
		return known, 0, err
	}
	if err := json.Unmarshal(row.Value, &known); err != nil {
		return known, 0, fmt.Errorf("decode setting %s: %w: %w", networksSetting, store.ErrCorrupt, err)
	}
	if known.Format != networksFormat {
		known = signInNetworks{Format: networksFormat}
	}
	oldest := time.Now().Add(-networkLifetime)
	known.Networks = slices.DeleteFunc(known.Networks, func(n signInNetwork) bool { return n.Seen.Before(oldest) })
	return known, row.Generation, nil
}

func isNetwork(user string, network netip.Prefix) func(signInNetwork) bool {
	hash := hashNetwork(user, network)
	return func(n signInNetwork) bool { return n.Hash == hash }
}

func hashNetwork(user string, network netip.Prefix) string {
	sum := sha256.Sum256([]byte(user + "\x00" + network.String()))
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}
