package skill

import (
	"archive/zip"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Hasher computes the manifest of a skill repeatedly. It hashes only files
// whose size, time or identity changed since the last call. The zero value is
// ready to use. A Hasher is safe for concurrent use, but concurrent calls are
// serialized. It must not be copied after first use.
type Hasher struct {
	mu    sync.Mutex
	cache map[string]cachedHash
}

type cachedHash struct {
	info fs.FileInfo
	seen time.Time
	sum  string
}

// Manifest is like [ReadManifest], but uses cached hashes for unchanged files.
// fsys must hold the same skill in each call. If Manifest returns an error, the
// cache does not change.
func (h *Hasher) Manifest(fsys fs.FS) (Manifest, Diagnostics, error) {
	if files, ok, err := knownManifest(fsys); ok {
		return files, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	infos := make(map[string]fs.FileInfo, len(h.cache))
	files, ds, err := walk(fsys, func(f *File, info fs.FileInfo) {
		infos[f.Path] = info
		if k, ok := h.cache[f.Path]; ok && k.unchanged(info) {
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
	known := make(map[string]cachedHash, len(files))
	for _, f := range files {
		if k, ok := h.cache[f.Path]; ok && k.sum == f.SHA256 && k.unchanged(infos[f.Path]) {
			known[f.Path] = k
			continue
		}
		known[f.Path] = cachedHash{infos[f.Path], now, f.SHA256}
	}
	h.cache = known
	return files, ds, nil
}

// unchanged reports whether the file is known not to have changed since it was
// hashed. File times have a low resolution, so a change shortly after hashing
// might not be visible. Where the system provides a change time, it is compared
// too, because it cannot be set back.
func (k cachedHash) unchanged(info fs.FileInfo) bool {
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
	case nil, *zip.FileHeader: // not a system file: embedded, or in an archive
		return true
	}
	return false
}
