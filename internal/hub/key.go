package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/store"
)

// KeyFile is the name of the file in [Options.Data] that holds the keys for
// secrets.
const KeyFile = "key"

// KeyError reports that a key for a hub's secrets is missing.
type KeyError struct {
	Reason string
	Next   string // what to do
}

func (e *KeyError) Error() string { return "hub encryption key: " + e.Reason }

// openCipher returns the cipher for a hub's secrets. It creates a key only if the
// hub has no secrets and runs on a single machine. Nodes with different keys could
// not read each other's secrets.
func openCipher(ctx context.Context, db *store.DB, o Options) (*encryption.Cipher, error) {
	used, err := db.Secrets.KeyIDs(ctx)
	if err != nil {
		return nil, err
	}
	keys, path := o.Keys, filepath.Join(o.Data, KeyFile)
	switch {
	case len(keys) > 0:
	case db.Kind() != "SQLite":
		return nil, &KeyError{Reason: "not configured; all nodes of one database need the same key", Next: "generate one with: openssl rand -base64 32"}
	case len(used) == 0:
		keys, err = encryption.LoadOrCreateKeys(ctx, path)
	default:
		keys, err = encryption.LoadKeys(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &KeyError{Reason: fmt.Sprintf("the database has secrets, but the key file %s does not exist", path),
			Next: "restore the file from its backup"}
	}
	if err != nil {
		return nil, err
	}
	if err := checkKeysComplete(used, keys); err != nil {
		return nil, err
	}
	return encryption.New(keys...)
}

// checkKeysComplete returns a [*KeyError] if keys lacks a key whose ID is in used.
func checkKeysComplete(used []string, keys []encryption.Key) error {
	have := map[string]bool{}
	for _, k := range keys {
		have[k.ID()] = true
	}
	for _, id := range used {
		if !have[id] {
			return &KeyError{Reason: fmt.Sprintf("some secrets need key %s, which was not given", id),
				Next: "add that key after the key for new secrets"}
		}
	}
	return nil
}
