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

// ErrNotTrusted says that a directory is not among those a person trusts.
var ErrNotTrusted = errors.New("not trusted")

// Trust is a directory of a project whose configuration counts, as it was when
// a person said so.
type Trust struct {
	Version int       `json:"version"` // set by Projects
	Dir     string    `json:"dir"`     // absolute, without links
	Digest  Digest    `json:"digest"`  // of its configuration, as of [ProjectDigest]
	Created time.Time `json:"created"` // set by Projects
	By      Principal `json:"by"`      // a person
}

// Projects keeps which directories a person trusts, each in a file of a
// directory, for any number of processes of one user at once. What holds for
// [Files] holds for it: a directory or a file that others could have written
// fails with an [*UnsafeError], one that is damaged with an error, and neither
// is trust. Nothing is kept open. It is safe for concurrent use.
type Projects struct{ dir string }

// NewProjects returns the store in dir, which Trust makes where it is missing.
func NewProjects(dir string) *Projects { return &Projects{dir: dir} }

// Trust keeps that by trusts dir while its digest is this one, in place of
// another digest. dir exists; links in it are followed.
func (s *Projects) Trust(ctx context.Context, dir string, digest Digest, by Principal) (Trust, error) {
	t := Trust{Version: trustVersion, Digest: digest, By: by, Created: time.Now().UTC().Round(0)}
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		t.Dir, err = realDir(dir)
	}
	if err == nil {
		err = t.check()
	}
	if err == nil {
		err = s.change(ctx, func(root *os.Root) error { return s.write(root, t) })
	}
	if err != nil {
		return Trust{}, fmt.Errorf("keep that %s is trusted: %w", visible(dir, 300), err)
	}
	return t, nil
}

// Trusted reports whether dir is trusted as what has this digest. It fails
// where that cannot be known, and then it is not.
func (s *Projects) Trusted(dir string, digest Digest) (bool, error) {
	t, err := s.Find(dir)
	switch {
	case errors.Is(err, ErrNotTrusted):
		return false, nil
	case err != nil:
		return false, err
	}
	return t.Digest == digest, nil
}

// Find returns what is kept of dir, which may have changed since. It fails with
// [ErrNotTrusted] where that is nothing.
func (s *Projects) Find(dir string) (Trust, error) {
	t, err := s.find(dir)
	if err != nil {
		return Trust{}, fmt.Errorf("look whether %s is trusted: %w", visible(dir, 300), err)
	}
	return t, nil
}

func (s *Projects) find(dir string) (Trust, error) {
	dir, err := realDir(dir)
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
	t, err := s.read(root, trustName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotTrusted
	}
	return t, err
}

// Untrust forgets dir, which need not exist any more, and returns what was
// kept. It fails with [ErrNotTrusted] where that is nothing.
func (s *Projects) Untrust(ctx context.Context, dir string) (Trust, error) {
	real, err := realDir(dir)
	if err != nil { // it is gone: then it is named as it was listed
		if real, err = filepath.Abs(dir); err != nil {
			return Trust{}, fmt.Errorf("trust %s no more: %w", visible(dir, 300), err)
		}
	}
	var t Trust
	err = s.change(ctx, func(root *os.Root) error {
		name := trustName(real)
		kept, err := s.read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ErrNotTrusted
		case err != nil:
			kept = Trust{Dir: real} // it counted for nothing, and goes too
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
		return Trust{}, fmt.Errorf("trust %s no more: %w", visible(dir, 300), err)
	}
	return t, nil
}

// List returns all that is trusted, by directory, and what is wrong with
// others. It fails where none can be read.
func (s *Projects) List() ([]Trust, []Problem, error) {
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list what is trusted: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, fmt.Errorf("list what is trusted: %w", err)
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
			problems = append(problems, Problem{Where: filepath.Join(s.dir, e.Name()), Message: reason(err)})
		}
	}
	slices.SortFunc(out, func(a, b Trust) int { return cmp.Compare(a.Dir, b.Dir) })
	return out, problems, nil
}

func realDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// trustName is the file for a directory.
func trustName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16]) + suffix
}

func (t *Trust) check() error {
	errs := []error{t.By.check()}
	if t.By.Kind != Person {
		errs = append(errs, fmt.Errorf("only a person trusts, not %q", t.By.Kind))
	}
	if !filepath.IsAbs(t.Dir) || len(t.Dir) > maxPath {
		errs = append(errs, fmt.Errorf("%.200q is no absolute path of at most %d bytes", t.Dir, maxPath))
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

// read reads one file, which is as write wrote it.
func (s *Projects) read(root *os.Root, name string) (Trust, error) {
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
		err = fmt.Errorf("it has version %d, and this program knows version %d only", t.Version, trustVersion)
	default:
		err = t.check()
	}
	if err == nil && trustName(t.Dir) != name {
		err = fmt.Errorf("it is for %s", visible(t.Dir, 300))
	}
	if err == nil {
		again, e := t.encode()
		if err = e; err == nil && !bytes.Equal(again, data) {
			err = errors.New("it is not as this program writes it")
		}
	}
	if err != nil {
		return Trust{}, &damagedError{path, err}
	}
	return t, nil
}

// change runs f while no other changes the store, here or elsewhere.
func (s *Projects) change(ctx context.Context, f func(*os.Root) error) error {
	return NewFiles(s.dir).change(ctx, f)
}

// write puts a file in place, whole and on disk.
func (s *Projects) write(root *os.Root, t Trust) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > maxTrust {
		return fmt.Errorf("there are %d directories already: remove some", maxTrust)
	}
	return place(root, trustName(t.Dir), data)
}
