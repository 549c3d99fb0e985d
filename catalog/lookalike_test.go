package catalog_test

import (
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/catalog"
)

func TestLookalikeNamesAreReported(t *testing.T) {
	bundled := catalog.NewFS("bundled", catalog.Bundled, fstest.MapFS{"pdf/SKILL.md": {Data: []byte(doc("pdf", ""))}})
	for name, want := range map[string]bool{"рdf": true, "Pdf": true, "pdf": false, "pdf-2": false, "документ": false, "文档": false} {
		project := catalog.NewFS("project", catalog.Project, fstest.MapFS{"x/SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: d\n---\n")}})
		found := false
		for _, p := range open(t, project, bundled).Snapshot().Problems() {
			if p.Code != "lookalike-name" {
				continue
			}
			found = true
			if p.Origin != "project" || p.Fix == "" {
				t.Errorf("%+q: %+v", name, p)
			}
		}
		if found != want {
			t.Errorf("%+q: reported %v, want %v", name, found, want)
		}
	}
}
