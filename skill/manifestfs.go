package skill

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

// ManifestFS is a file system that knows its files without reading them, for
// example because a server published their hashes. [List], [ReadManifest] and
// [Hasher] use its manifest and open no file.
type ManifestFS interface {
	fs.FS
	// Manifest returns all files with their sizes and hashes, sorted by path.
	// The caller must not modify it. Open must return an error instead of
	// content that does not match it.
	Manifest() (Manifest, error)
}

// knownManifest returns the manifest of a [ManifestFS], or false for any other
// file system. It applies the limits of [List].
func knownManifest(fsys fs.FS) (Manifest, bool, error) {
	m, ok := fsys.(ManifestFS)
	if !ok {
		return nil, false, nil
	}
	files, err := m.Manifest()
	if err != nil {
		return nil, true, fmt.Errorf("list files of skill: %w", err)
	}
	if len(files) > skillfile.MaxFiles || files.Size() > skillfile.MaxBytes {
		return nil, true, fmt.Errorf("list files of skill: %w: %d files with %d bytes (limits %d and %d)", ErrTooLarge, len(files), files.Size(), skillfile.MaxFiles, skillfile.MaxBytes)
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, true, nil
}
