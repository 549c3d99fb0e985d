package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/policy"
)

// Key is whose sign-in is meant, and to which server: its URL, in one form.
type Key struct{ Principal, Server string }

// A Keep keeps sign-ins, of which it knows nothing: what is in them is secret. It is
// safe for concurrent use, by any number of processes.
type Keep interface {
	// Read returns what is kept, nil where there is nothing.
	Read(ctx context.Context, k Key) ([]byte, error)
	// Change puts what edit makes of it in its place, nil for nothing. Nobody else, in
	// whatever process, edits it meanwhile: edit may ask other servers, and so take
	// half a minute. Where edit fails nothing changes, and that is the error.
	Change(ctx context.Context, k Key, edit func(old []byte) ([]byte, error)) error
}

const maxFile = 256 << 10

// Files keeps each sign-in in a file of a directory, which only its owner can read. The
// directory is made when something is kept.
type Files string

var _ Keep = Files("")

func (f Files) path(k Key) string {
	sum := sha256.Sum256([]byte(k.Principal + "\x00" + k.Server))
	return filepath.Join(string(f), hex.EncodeToString(sum[:16])+".json")
}

func (f Files) file(k Key) *policy.OwnFile { return policy.NewOwnFile(f.path(k), maxFile) }

// Read implements [Keep].
func (f Files) Read(_ context.Context, k Key) ([]byte, error) {
	data, err := f.file(k).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// errSame ends a change after which the file needs not be written.
var errSame = errors.New("nothing is to be written")

// Change implements [Keep].
func (f Files) Change(ctx context.Context, k Key, edit func([]byte) ([]byte, error)) error {
	err := f.file(k).Change(ctx, func(old []byte) ([]byte, error) {
		next, err := edit(old)
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return nil, f.delete(k)
		case bytes.Equal(next, old):
			return nil, errSame
		}
		return next, nil
	})
	if errors.Is(err, errSame) {
		return nil
	}
	return err
}

// delete removes a file while its lock is held.
func (f Files) delete(k Key) error {
	if err := os.Remove(f.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the sign-in: %w", err)
	}
	return errSame
}
