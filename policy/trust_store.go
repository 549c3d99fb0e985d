package policy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	trustVersion  = 1
	maxTrust      = 4096 // directories in one store
	maxTrustBytes = 16 << 10
	maxPath       = 4096
)

// ErrNotTrusted means that the user does not trust a directory.
var ErrNotTrusted = errors.New("not trusted")

// Trust records that a user trusts a project directory while its configuration
// has this digest.
type Trust struct {
	Version int       `json:"version"` // set by TrustStore
	Dir     string    `json:"dir"`     // absolute, with symbolic links resolved
	Digest  Digest    `json:"digest"`  // of the configuration; see [ProjectDigest]
	Created time.Time `json:"created"` // set by TrustStore
	By      Principal `json:"by"`      // a user
}

// TrustStore stores which project directories the user trusts, each in a file
// of a directory. Any number of processes of one user can use it at the same
// time. As with [FileStore], files that other users could have written give an
// [*UnsafeFileError] and damaged files an error; neither counts as trust.
// TrustStore keeps no files open and is safe for concurrent use.
type TrustStore struct{ dir string }

// NewTrustStore returns the store in dir. Trust creates the directory if
// necessary.
func NewTrustStore(dir string) *TrustStore { return &TrustStore{dir: dir} }

// Trust records that by trusts dir while its configuration has this digest. It
// replaces an earlier record. dir must exist; symbolic links in it are
// resolved.
func (s *TrustStore) Trust(ctx context.Context, dir string, digest Digest, by Principal) (Trust, error) {
	t := Trust{Version: trustVersion, Digest: digest, By: by, Created: time.Now().UTC().Round(0)}
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		t.Dir, err = resolveDir(dir)
	}
	if err == nil {
		err = t.check()
	}
	if err == nil {
		err = s.withLock(ctx, func(root *os.Root) error { return s.write(root, t) })
	}
	if err != nil {
		return Trust{}, fmt.Errorf("trust %s: %w", escapeText(dir, 300), err)
	}
	return t, nil
}

// IsTrusted reports whether dir is trusted with this digest. If it returns an
// error, the directory is not trusted.
func (s *TrustStore) IsTrusted(dir string, digest Digest) (bool, error) {
	t, err := s.Find(dir)
	switch {
	case errors.Is(err, ErrNotTrusted):
		return false, nil
	case err != nil:
		return false, err
	}
	return t.Digest == digest, nil
}

// Find returns the record of dir, whose configuration may have changed since.
// It returns [ErrNotTrusted] if there is none.
func (s *TrustStore) Find(dir string) (Trust, error) {
	t, err := s.find(dir)
	if err != nil {
		return Trust{}, fmt.Errorf("check trust of %s: %w", escapeText(dir, 300), err)
	}
	return t, nil
}

func (s *TrustStore) find(dir string) (Trust, error) {
	dir, err := resolveDir(dir)
	if err != nil {
		return Trust{}, err
	}
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Trust{}, ErrNotTrusted
	}
	if err != nil {
		return Trust{}, err
	}
	defer root.Close()
	t, err := s.read(root, trustFileName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotTrusted
	}
	return t, err
}

// Untrust deletes the record of dir, which need not exist any more, and returns
// it. It returns [ErrNotTrusted] if there is none.
func (s *TrustStore) Untrust(ctx context.Context, dir string) (Trust, error) {
	real, err := resolveDir(dir)
	if err != nil { // the directory is gone: use the name as listed
		if real, err = filepath.Abs(dir); err != nil {
			return Trust{}, fmt.Errorf("untrust %s: %w", escapeText(dir, 300), err)
		}
	}
	var t Trust
	err = s.withLock(ctx, func(root *os.Root) error {
		name := trustFileName(real)
		kept, err := s.read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ErrNotTrusted
		case err != nil:
			kept = Trust{Dir: real} // a damaged record is deleted too
		}
		t = kept
		if err := root.Remove(name); err != nil {
			return err
		}
		return syncDir(root)
	})
	if errors.Is(err, errNoStore) {
		err = ErrNotTrusted
	}
	if err != nil {
		return Trust{}, fmt.Errorf("untrust %s: %w", escapeText(dir, 300), err)
	}
	return t, nil
}

// List returns all records sorted by directory, and a problem for each
// unreadable one. It returns an error if none can be read.
func (s *TrustStore) List() ([]Trust, []Problem, error) {
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list trusted projects: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, fmt.Errorf("list trusted projects: %w", err)
	}
	var out []Trust
	var problems []Problem
	for _, e := range entries {
		if filepath.Ext(e.Name()) != suffix {
			continue
		}
		t, err := s.read(root, e.Name())
		switch {
		case err == nil:
			out = append(out, t)
		case !errors.Is(err, fs.ErrNotExist):
			problems = append(problems, Problem{Where: filepath.Join(s.dir, e.Name()), Message: problemText(err)})
		}
	}
	slices.SortFunc(out, func(a, b Trust) int { return cmp.Compare(a.Dir, b.Dir) })
	return out, problems, nil
}

func resolveDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// trustFileName returns the name of the file for a directory.
func trustFileName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16]) + suffix
}

func (t *Trust) check() error {
	errs := []error{t.By.check()}
	if t.By.Kind != UserPrincipal {
		errs = append(errs, fmt.Errorf("only a user can trust a project, not %q", t.By.Kind))
	}
	if !filepath.IsAbs(t.Dir) || len(t.Dir) > maxPath {
		errs = append(errs, fmt.Errorf("invalid directory %.200q: want an absolute path of at most %d bytes", t.Dir, maxPath))
	}
	if _, err := ParseDigest(string(t.Digest)); err != nil {
		errs = append(errs, err)
	}
	if t.Created.IsZero() {
		errs = append(errs, errors.New("created is missing"))
	}
	return errors.Join(errs...)
}

func (t *Trust) encode() ([]byte, error) {
	b, err := json.MarshalIndent(t, "", "  ")
	return append(b, '\n'), err
}

// read reads a file and rejects content that write would not produce.
func (s *TrustStore) read(root *os.Root, name string) (Trust, error) {
	path := filepath.Join(s.dir, name)
	data, err := readFile(root, name, path, maxTrustBytes)
	if err != nil {
		return Trust{}, err
	}
	var t Trust
	err = json.Unmarshal(data, &t)
	switch {
	case err != nil:
	case t.Version != trustVersion:
		err = fmt.Errorf("unsupported version %d (this program supports version %d)", t.Version, trustVersion)
	default:
		err = t.check()
	}
	if err == nil && trustFileName(t.Dir) != name {
		err = fmt.Errorf("record is for %s", escapeText(t.Dir, 300))
	}
	if err == nil {
		again, e := t.encode()
		if err = e; err == nil && !bytes.Equal(again, data) {
			err = errors.New("content differs from what this program writes")
		}
	}
	if err != nil {
		return Trust{}, &damagedError{path, err}
	}
	return t, nil
}

// withLock runs f while no other process changes the store.
func (s *TrustStore) withLock(ctx context.Context, f func(*os.Root) error) error {
	return NewFileStore(s.dir).withLock(ctx, f)
}

// write replaces the file of a record atomically and syncs it to disk.
func (s *TrustStore) write(root *os.Root, t Trust) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > maxTrust {
		return fmt.Errorf("too many trusted directories (limit %d): remove some", maxTrust)
	}
	return replaceFile(root, trustFileName(t.Dir), data)
}
