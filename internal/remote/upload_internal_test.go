package remote

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/skill"
)

// An upload is an archive, which keeps its top directory, or a file under its name.
func TestOpenUpload(t *testing.T) {
	text := "---\nname: pdf\ndescription: Reads PDF.\n---\nRead it.\n"
	archive := []packed{{name: "memory/MEMORY.md", content: "x"}, {name: "memory/pdf/SKILL.md", content: text}}
	for _, tt := range []struct {
		name   string
		data   []byte
		files  []string
		skills []string
	}{
		{"a.zip", zipOf(t, archive...), []string{"memory/MEMORY.md", "memory/pdf/SKILL.md"}, []string{"memory/pdf"}},
		{"a.json", gzipped(tarOf(t, archive...)), []string{"memory/MEMORY.md", "memory/pdf/SKILL.md"}, []string{"memory/pdf"}},
		{"dir/task.json", []byte("{}"), []string{"task.json"}, nil},
		{"SKILL.md", []byte(text), []string{"SKILL.md"}, []string{"."}},
		{"", nil, nil, nil},
	} {
		c := New(&Options{KeepTop: true, TempDir: t.TempDir()})
		o, err := c.OpenUpload(t.Context(), tt.name, bytes.NewReader(tt.data), int64(len(tt.data)))
		if err != nil {
			t.Errorf("%q: %v", tt.name, err)
			continue
		}
		var files, skills []string
		fs.WalkDir(o.Files(), ".", func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, p)
			}
			return err
		})
		for _, s := range o.Skills {
			skills = append(skills, s.Dir)
		}
		if !slices.Equal(files, tt.files) || !slices.Equal(skills, tt.skills) {
			t.Errorf("%q: files %q, skills %q", tt.name, files, skills)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := New(nil).OpenUpload(t.Context(), "..", bytes.NewReader(nil), 0)
	if _, ok := errors.AsType[*skill.RefusedError](err); !ok {
		t.Errorf("a file named ..: %v", err)
	}
}
