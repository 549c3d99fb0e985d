package trust

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

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/policy"
)

const (
	recordVersion  = 1
	maxRecords     = 4096 // directories in one store
	maxRecordBytes = 16 << 10
	maxPath        = 4096

	recordSuffix = ".json"
)

// ErrNotTrusted is returned if the user does not trust a directory.
var ErrNotTrusted = errors.New("directory not trusted")

// Record states that a user trusts a project directory as long as its
// configuration has this digest.
type Record struct {
	Version int              `json:"version"` // set by Store
	Dir     string           `json:"dir"`     // absolute, with symlinks resolved
	Digest  policy.Digest    `json:"digest"`  // digest of the configuration; see [ConfigDigest]
	Created time.Time        `json:"created"` // set by Store
	By      policy.Principal `json:"by"`      // must be a user
}

// Store stores which project directories the user trusts, in one file per
// directory. Several processes of one user can use it concurrently. As with
// [policy.NewFileStore], a file that other users can write causes a
// [*privatefile.UnsafeError], and a damaged file causes another error; neither
// counts as trust. Store keeps no files open and is safe for concurrent use.
type Store struct{ dir string }

// NewStore returns the store in dir. Trust creates the directory if necessary.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Trust records that user trusts dir while its configuration has this digest.
// It replaces an earlier record. dir must exist. Trust resolves symlinks in
// dir.
func (s *Store) Trust(ctx context.Context, dir string, digest policy.Digest, user policy.Principal) (Record, error) {
	t := Record{Version: recordVersion, Digest: digest, By: user, Created: time.Now().UTC().Round(0)}
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		t.Dir, err = resolveDir(dir)
	}
	if err == nil {
		err = t.check()
	}
	if err == nil {
		err = privatefile.LockDir(ctx, s.dir, func(root *os.Root) error { return s.write(root, t) })
	}
	if err != nil {
		return Record{}, fmt.Errorf("trust %s: %w", printable.Text(dir, 300), err)
	}
	return t, nil
}

// Find returns the record of dir. The configuration may have changed since. If
// there is no record, the error is [ErrNotTrusted].
func (s *Store) Find(dir string) (Record, error) {
	t, err := s.find(dir)
	if err != nil {
		return Record{}, fmt.Errorf("check trust of %s: %w", printable.Text(dir, 300), err)
	}
	return t, nil
}

func (s *Store) find(dir string) (Record, error) {
	dir, err := resolveDir(dir)
	if err != nil {
		return Record{}, err
	}
	root, err := privatefile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, ErrNotTrusted
	}
	if err != nil {
		return Record{}, err
	}
	defer root.Close()
	t, err := s.read(root, fileName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotTrusted
	}
	return t, err
}

// Path returns the file with the record of a directory, which exists while the user
// trusts the directory, or "" if the directory cannot be resolved.
func (s *Store) Path(dir string) string {
	dir, err := resolveDir(dir)
	if err != nil {
		return ""
	}
	return filepath.Join(s.dir, fileName(dir))
}

// Untrust deletes the record of dir and returns it. dir need not exist. If
// there is no record, the error is [ErrNotTrusted].
func (s *Store) Untrust(ctx context.Context, dir string) (Record, error) {
	real, err := resolveDir(dir)
	if err != nil { // the directory does not exist: use the name as listed
		if real, err = filepath.Abs(dir); err != nil {
			return Record{}, fmt.Errorf("untrust %s: %w", printable.Text(dir, 300), err)
		}
	}
	var t Record
	err = privatefile.LockDir(ctx, s.dir, func(root *os.Root) error {
		name := fileName(real)
		stored, err := s.read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ErrNotTrusted
		case err != nil:
			stored = Record{Dir: real} // delete a damaged record too
		}
		t = stored
		if err := root.Remove(name); err != nil {
			return err
		}
		return privatefile.SyncDir(root)
	})
	if errors.Is(err, privatefile.ErrNoDir) {
		err = ErrNotTrusted
	}
	if err != nil {
		return Record{}, fmt.Errorf("untrust %s: %w", printable.Text(dir, 300), err)
	}
	return t, nil
}

// List returns all records sorted by directory, and a problem for each
// unreadable one. It returns an error if the directory of records cannot be
// read.
func (s *Store) List() ([]Record, []policy.Problem, error) {
	root, err := privatefile.OpenDir(s.dir)
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
	var out []Record
	var problems []policy.Problem
	for _, e := range entries {
		if filepath.Ext(e.Name()) != recordSuffix {
			continue
		}
		t, err := s.read(root, e.Name())
		switch {
		case err == nil:
			out = append(out, t)
		case !errors.Is(err, fs.ErrNotExist):
			problems = append(problems, policy.Problem{Where: filepath.Join(s.dir, e.Name()), Message: privatefile.Reason(err)})
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return cmp.Compare(a.Dir, b.Dir) })
	return out, problems, nil
}

func resolveDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// fileName returns the name of the file with the record for dir.
func fileName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16]) + recordSuffix
}

func (t *Record) check() error {
	errs := []error{t.By.Check()}
	if t.By.Kind != policy.UserPrincipal {
		errs = append(errs, fmt.Errorf("only a user can trust a project, not %q", t.By.Kind))
	}
	if !filepath.IsAbs(t.Dir) || len(t.Dir) > maxPath {
		errs = append(errs, fmt.Errorf("invalid directory %.200q: want an absolute path of at most %d bytes", t.Dir, maxPath))
	}
	if err := t.Digest.Check(); err != nil {
		errs = append(errs, err)
	}
	if t.Created.IsZero() {
		errs = append(errs, errors.New("missing creation time"))
	}
	return errors.Join(errs...)
}

func (t *Record) encode() ([]byte, error) {
	b, err := json.MarshalIndent(t, "", "  ")
	return append(b, '\n'), err
}

// read reads a record and rejects content that write would not produce.
func (s *Store) read(root *os.Root, name string) (Record, error) {
	path := filepath.Join(s.dir, name)
	data, err := privatefile.ReadFile(root, name, path, maxRecordBytes)
	if err != nil {
		return Record{}, err
	}
	var t Record
	err = privatefile.CheckVersion(data, recordVersion)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err == nil {
		err = t.check()
	}
	if err == nil && fileName(t.Dir) != name {
		err = fmt.Errorf("record belongs to another directory: %s", printable.Text(t.Dir, 300))
	}
	if err == nil {
		again, e := t.encode()
		if err = e; err == nil && !bytes.Equal(again, data) {
			err = errors.New("record is not in canonical form")
		}
	}
	if err != nil {
		return Record{}, &privatefile.DamagedError{Path: path, Err: err}
	}
	return t, nil
}

// write atomically replaces the file of a record and syncs it to disk.
func (s *Store) write(root *os.Root, t Record) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > maxRecords {
		return fmt.Errorf("too many trusted directories (limit %d): remove some", maxRecords)
	}
	return privatefile.ReplaceFile(root, fileName(t.Dir), data)
}
