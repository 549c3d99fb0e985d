package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/fileid"
	"github.com/loadout-dev/loadout/sandbox"
)

// programName is the name of the program in its bundle.
const programName = "loadout-stage"

// Program returns the path of a cached copy of an executable, for users who
// cannot access the original. Unlike copies of skills, a copy that this process
// has verified is verified again only if the metadata of the original or of the
// copy changes.
func Program(cache, exe string) (string, *Bundle, error) {
	f, err := os.Open(exe)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if b := verified.reuse(cache, f); b != nil {
		return filepath.Join(b.Dir, programName), b, nil
	}
	began := time.Now()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", nil, err
	}
	t := &sandbox.Tree{Path: "program", FS: singleFile{programName, exe},
		Files: []sandbox.File{{Path: programName, Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: true}}}
	b, err := Open(cache, t)
	if err != nil {
		return "", nil, err
	}
	verified.add(cache, f, b, t, began)
	return filepath.Join(b.Dir, programName), b, nil
}

// verified contains the programs that this process has verified.
var verified = programs{m: map[programKey]program{}}

type programs struct {
	mu sync.Mutex
	m  map[programKey]program // guarded by mu
}

// programKey consists of the paths of a cache and an executable.
type programKey struct{ cache, exe string }

// program is an executable and its verified copy.
type program struct {
	original, copied fileid.ID
	dir              string
	tree             *sandbox.Tree
}

// reuse returns the verified copy of an executable, or nil if there is none or
// one of the two files may have changed.
func (p *programs) reuse(cache string, exe *os.File) *Bundle {
	p.mu.Lock()
	v, ok := p.m[programKey{cache, exe.Name()}]
	p.mu.Unlock()
	if id, known := idOf(exe.Stat()); !ok || !known || id != v.original {
		return nil
	}
	held, err := openLocked(v.dir)
	if err != nil {
		return nil
	}
	id, known := idOf(os.Lstat(filepath.Join(v.dir, programName)))
	if !known || id != v.copied || !hasShape(v.dir, v.tree) {
		held.Close()
		return nil
	}
	now := time.Now()
	os.Chtimes(v.dir, now, now) // for sweep, the time of last use
	return &Bundle{Dir: v.dir, held: held}
}

// add adds a copy whose verification began at the given time, unless one of the
// files could have changed since then.
func (p *programs) add(cache string, exe *os.File, b *Bundle, t *sandbox.Tree, began time.Time) {
	v := program{dir: b.Dir, tree: t}
	var ok, ok2 bool
	v.original, ok = idOf(exe.Stat())
	v.copied, ok2 = idOf(os.Lstat(filepath.Join(b.Dir, programName)))
	if ok && ok2 && v.original.DetectsChangesSince(began) && v.copied.DetectsChangesSince(began) {
		p.mu.Lock()
		p.m[programKey{cache, exe.Name()}] = v
		p.mu.Unlock()
	}
}

func idOf(info fs.FileInfo, err error) (fileid.ID, bool) {
	if err != nil {
		return fileid.ID{}, false
	}
	return fileid.Of(info)
}

// singleFile is a file system that contains a single file.
type singleFile struct{ name, path string }

func (a singleFile) Open(name string) (fs.File, error) {
	if name != a.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(a.path)
}
