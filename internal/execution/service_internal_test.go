package execution

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/skillfile"
)

// A caller's files are in the sandbox in one tree, with their sizes and hashes.
func TestServiceTrees(t *testing.T) {
	if got := providerTrees(nil); got != nil {
		t.Errorf("without files: %+v", got)
	}
	files := map[string][]byte{"run.py": []byte("print()"), "lib.py": {}}
	trees := providerTrees(files)
	if len(trees) != 1 || trees[0].Path != provider.Dir {
		t.Fatalf("%+v", trees)
	}
	var listed []string
	for _, f := range trees[0].Files {
		listed = append(listed, fmt.Sprintf("%s %d", f.Path, f.Size))
		text, err := fs.ReadFile(trees[0].FS, f.Path)
		if err != nil || string(text) != string(files[f.Path]) || f.SHA256 != skillfile.Hash(text) {
			t.Errorf("%s: %q, %v", f.Path, text, err)
		}
	}
	if got := strings.Join(listed, ", "); got != "lib.py 0, run.py 7" {
		t.Errorf("files %s", got)
	}
}
