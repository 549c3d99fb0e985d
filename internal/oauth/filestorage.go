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

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Key identifies a sign-in by its principal and the canonical URL of the
// server.
type Key struct{ Principal, Server string }

// A Storage stores sign-ins as opaque, secret data. It is safe for concurrent
// use by several processes.
type Storage interface {
	// Read returns the data, or nil if there is none.
	Read(ctx context.Context, k Key) ([]byte, error)
	// Change replaces the data by the result of edit; nil deletes it. It locks
	// the key against all processes meanwhile. edit may contact other servers
	// and take 30 seconds. If edit fails, nothing changes and Change returns
	// its error.
	Change(ctx context.Context, k Key, edit func(old []byte) ([]byte, error)) error
}

const maxFile = 256 << 10

// FileStorage is a directory with one file for each sign-in, readable only by
// its owner. Change creates the directory.
type FileStorage string

var _ Storage = FileStorage("")

func (f FileStorage) path(k Key) string {
	sum := sha256.Sum256([]byte(k.Principal + "\x00" + k.Server))
	return filepath.Join(string(f), hex.EncodeToString(sum[:16])+".json")
}

func (f FileStorage) file(k Key) *privatefile.File {
	return privatefile.New(f.path(k), maxFile)
}

// Read implements [Storage].
func (f FileStorage) Read(_ context.Context, k Key) ([]byte, error) {
	data, err := f.file(k).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// errSame ends a change that needs no write.
var errSame = errors.New("nothing to write")

// Change implements [Storage].
func (f FileStorage) Change(ctx context.Context, k Key, edit func([]byte) ([]byte, error)) error {
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

// delete removes a file. The caller holds its lock.
func (f FileStorage) delete(k Key) error {
	if err := os.Remove(f.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the sign-in: %w", err)
	}
	return errSame
}
