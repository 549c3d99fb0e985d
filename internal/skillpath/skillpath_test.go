package skillpath_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/skillpath"
)

func TestIgnoredFiles(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".hg": true, ".svn": true, "__pycache__": true, ".DS_Store": true, "Thumbs.db": true, "__MACOSX": true,
		"a~": true, ".#a": true, "#a#": true, ".a.swp": true, ".a.swo": true,
		".gitignore": false, ".env": false, "#": false, "a.swp": false, ".swift": false, "git": false, "scripts": false, ".swim": false,
	} {
		if skillpath.IsIgnored(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
