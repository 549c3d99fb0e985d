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

// A Key identifies a sign-in by the principal and the server's canonical URL.
type Key struct{ Principal, Server string }

// A Storage stores the data of each sign-in, which is opaque and secret. It
// must be safe for concurrent use, even by several processes.
type Storage interface {
	// Read returns the data, or nil if there is none.
	Read(ctx context.Context, k Key) ([]byte, error)
	// Change replaces the data with the result of edit; a nil result deletes
	// the data. It locks the key for all processes while edit runs. edit may
	// contact servers and take up to 30 seconds. If edit returns an error,
	// Change leaves the data unchanged and returns that error.
	Change(ctx context.Context, k Key, edit func(old []byte) ([]byte, error)) error
}

const maxFile = 256 << 10

// FileStorage is the path of a directory with a file for each sign-in, readable
// only by its owner. Change creates the directory if necessary.
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

// errSame is returned to abort a change that has nothing to write.
var errSame = errors.New("no changes to write")

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

// delete removes the file of a sign-in and returns errSame if it succeeds. The
// caller must hold the file's lock.
func (f FileStorage) delete(k Key) error {
	if err := os.Remove(f.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete sign-in: %w", err)
	}
	return errSame
}
