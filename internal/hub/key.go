package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
)

// KeyFile is the name of the file in [Options.Data] that has the keys of secrets.
const KeyFile = "key"

// KeyError says that the keys are not there with which the secrets of a hub were sealed,
// or with which they could be.
type KeyError struct {
	Why  string
	Next string // what to do
}

func (e *KeyError) Error() string { return "the key of secrets: " + e.Why }

// openSealer returns what seals the secrets of a hub. A key is made for a hub that has
// sealed nothing yet, and on one machine only: nodes of their own keys could not read
// each other's secrets.
func openSealer(ctx context.Context, db *store.DB, o Options) (*seal.Sealer, error) {
	sealed, err := db.Secrets.NotSealedBy(ctx, "", 1)
	if err != nil {
		return nil, err
	}
	keys, path := o.Keys, filepath.Join(o.Data, KeyFile)
	switch {
	case len(keys) > 0:
	case db.Kind() != "SQLite":
		return nil, &KeyError{Why: "there is none, and all nodes of one database need the same", Next: "make one with: openssl rand -base64 32"}
	case len(sealed) == 0:
		keys, err = seal.MakeKeys(ctx, path)
	default:
		keys, err = seal.LoadKeys(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &KeyError{Why: fmt.Sprintf("there are secrets in the database, and no file %s to open them with", path),
			Next: "put the file back from where a copy is kept"}
	}
	if err != nil {
		return nil, err
	}
	if err := opensAll(ctx, db, keys); err != nil {
		return nil, err
	}
	return seal.New(keys...)
}

// opensAll fails where some of the secrets were sealed with another key than these.
func opensAll(ctx context.Context, db *store.DB, keys []seal.Key) error {
	have := map[string]bool{}
	for _, k := range keys {
		have[k.ID()] = true
	}
	older, err := db.Secrets.NotSealedBy(ctx, keys[0].ID(), store.MaxPage)
	if err != nil {
		return err
	}
	for _, s := range older {
		if !have[s.KeyID] {
			return &KeyError{Why: fmt.Sprintf("some secrets were sealed with the key %s, which is not among those given", s.KeyID),
				Next: "give that key too, behind the one that seals from now on"}
		}
	}
	return nil
}
