package skill

import (
	"archive/zip"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Hasher reads the manifest of one skill again and again, hashing only files
// whose size, time or identity changed since it last did. The zero value is
// ready to use. It is safe for concurrent use; callers wait for each other.
type Hasher struct {
	mu    sync.Mutex
	known map[string]hashed
}

type hashed struct {
	info fs.FileInfo
	seen time.Time
	sum  string
}

// Manifest is [ReadManifest] with a memory.
func (h *Hasher) Manifest(fsys fs.FS) (Manifest, Diagnostics, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	infos := make(map[string]fs.FileInfo, len(h.known))
	files, ds, err := walk(fsys, func(f *File, info fs.FileInfo) {
		infos[f.Path] = info
		if k, ok := h.known[f.Path]; ok && k.unchanged(info) {
			f.SHA256 = k.sum
		}
	})
	if err != nil {
		return nil, ds, err
	}
	files, ds, err = hashAll(fsys, files, ds)
	if err != nil {
		return nil, ds, err
	}
	known := make(map[string]hashed, len(files))
	for _, f := range files {
		if k, ok := h.known[f.Path]; ok && k.sum == f.SHA256 && k.unchanged(infos[f.Path]) {
			known[f.Path] = k
			continue
		}
		known[f.Path] = hashed{infos[f.Path], now, f.SHA256}
	}
	h.known = known
	return files, ds, nil
}

// unchanged reports whether the file is surely the one that was hashed. File
// times tick slowly, so a file that was new when it was hashed may have
// changed without a trace. The time of change cannot be set back as that of
// modification can, where the system has it.
func (k hashed) unchanged(info fs.FileInfo) bool {
	changed := changeTime(info)
	if !sameFile(k.info, info) || k.info.Size() != info.Size() || !k.info.ModTime().Equal(info.ModTime()) || !changeTime(k.info).Equal(changed) {
		return false
	}
	last := info.ModTime()
	if changed.After(last) {
		last = changed
	}
	return k.seen.Sub(last) > 2*time.Second
}

func sameFile(a, b fs.FileInfo) bool {
	if os.SameFile(a, b) {
		return true
	}
	switch a.Sys().(type) {
	case nil, *zip.FileHeader: // not a file of the system: embedded, or in an archive
		return true
	}
	return false
}
