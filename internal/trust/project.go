// Package trust records which projects the user trusts. A project is a
// directory with configuration that someone else may have written. The
// configuration applies only while the user trusts exactly these files. The
// package prints nothing. Start reading at [Read]. A [Store] records trust, and
// [NewServers] provides the server commands of a trusted project.
package trust

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/policy"
)

// ErrChanged is returned for a file that changed after the project was read.
var ErrChanged = errors.New("file changed since the project was read")

// Project is a snapshot of a directory's configuration.
type Project struct {
	Dir     string // absolute, with symlinks resolved
	Digest  policy.Digest
	Files   []File
	Trusted bool
	Changed bool // whether another version of the configuration was trusted, but not this one
}

// Read reads the configuration of a directory and checks whether the user
// trusts it. With a nil store, no project is trusted. If the store cannot be
// read, Read returns the project as not trusted, together with the error.
func Read(dir string, store *Store) (*Project, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := &Project{Dir: dir}
	if p.Digest, p.Files, err = ConfigDigest(root); err != nil {
		return nil, err
	}
	if store == nil {
		return p, nil
	}
	t, err := store.Find(dir)
	if errors.Is(err, ErrNotTrusted) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Trusted = t.Digest == p.Digest
	p.Changed = !p.Trusted
	return p, nil
}

// State returns "trusted", "changed" or "untrusted".
func (p *Project) State() string {
	switch {
	case p.Trusted:
		return "trusted"
	case p.Changed:
		return "changed"
	}
	return "untrusted"
}

// Covers reports whether a file with this content is part of the configuration.
func (p *Project) Covers(file string, data []byte) bool {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return false
	}
	name, err := filepath.Rel(p.Dir, filepath.Join(dir, filepath.Base(file)))
	return err == nil && ContainsFile(p.Files, filepath.ToSlash(name), data)
}

// ReadFile returns the content of a configuration file. If the file has
// changed, the error is [ErrChanged].
func (p *Project) ReadFile(f File) ([]byte, error) {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(f.Path))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
	if err != nil || !ContainsFile(p.Files, f.Path, data) {
		return nil, ErrChanged
	}
	return data, nil
}
