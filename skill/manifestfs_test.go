package skill_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/skill"
)

// listedFS has a manifest, and fails to open any file.
type listedFS struct {
	fstest.MapFS
	files skill.Manifest
	err   error
}

func (l listedFS) Open(name string) (fs.File, error)     { return nil, errors.New("opened " + name) }
func (l listedFS) Manifest() (skill.Manifest, error)     { return l.files, l.err }
func (l listedFS) ReadDir(string) ([]fs.DirEntry, error) { return nil, errors.New("listed") }
func (l listedFS) Stat(name string) (fs.FileInfo, error) { return nil, errors.New("stat " + name) }

func TestManifestOfAFileSystemThatKnowsIt(t *testing.T) {
	files := skill.Manifest{{Path: "b", Size: 2, SHA256: "22"}, {Path: "SKILL.md", Size: 1, SHA256: "11"}}
	var h skill.Hasher
	for name, read := range map[string]func(fs.FS) (skill.Manifest, skill.Diagnostics, error){"List": skill.List, "ReadManifest": skill.ReadManifest, "Hasher": h.Manifest} {
		got, _, err := read(listedFS{files: files})
		if err != nil || len(got) != 2 || got[0].Path != "SKILL.md" || got[1].SHA256 != "22" {
			t.Errorf("%s: %v, %v; want the sorted manifest without opening a file", name, got, err)
		}
		if _, _, err := read(listedFS{err: fs.ErrInvalid}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: error %v, want that of the manifest", name, err)
		}
		if _, _, err := read(listedFS{files: skill.Manifest{{Path: "SKILL.md", Size: 1 << 40}}}); !errors.Is(err, skill.ErrTooLarge) {
			t.Errorf("%s: error %v, want ErrTooLarge", name, err)
		}
	}
	if files[0].Path != "b" {
		t.Error("the manifest of the file system was modified")
	}
}
