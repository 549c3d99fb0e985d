package skillfile_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

func TestFind(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("x")}
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		want  string // "" if there is none
		err   error  // nil means any
	}{
		{"exact", fstest.MapFS{"SKILL.md": file, "skill.md": file}, "SKILL.md", nil},
		{"lower case", fstest.MapFS{"skill.md": file, "README.md": file}, "skill.md", nil},
		{"mixed case", fstest.MapFS{"Skill.md": file}, "Skill.md", nil},
		{"lower case before others", fstest.MapFS{"SKILL.MD": file, "Skill.md": file, "skill.md": file}, "skill.md", nil},
		{"first of others", fstest.MapFS{"SKILL.MD": file, "Skill.md": file}, "SKILL.MD", nil},
		{"none", fstest.MapFS{"README.md": file, "a/SKILL.md": file}, "", fs.ErrNotExist},
		{"a directory of another case", fstest.MapFS{"skill.md/x": file}, "", fs.ErrNotExist},
		{"a directory", fstest.MapFS{"SKILL.md/x": file}, "", nil},
		{"a pipe", fstest.MapFS{"SKILL.md": {Mode: fs.ModeNamedPipe}}, "", nil},
	} {
		got, err := skillfile.Find(tt.files)
		if got != tt.want || (err == nil) != (tt.want != "") || tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

func TestHash(t *testing.T) {
	if got := skillfile.Hash([]byte("abc")); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("hash %s", got)
	}
}

func TestIsHash(t *testing.T) {
	hash := skillfile.Hash(nil)
	for s, want := range map[string]bool{
		hash: true, "": false, hash[1:]: false, hash + "0": false, "A" + hash[1:]: false, "g" + hash[1:]: false, " " + hash[1:]: false,
	} {
		if skillfile.IsHash(s) != want {
			t.Errorf("IsHash(%q) = %t", s, !want)
		}
	}
}
