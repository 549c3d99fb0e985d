package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/workspace"
)

// A file that a script created is copied into the workspace by its link, unchanged and
// under the rules for all writes.
func TestWriteScriptOutput(t *testing.T) {
	const link = "loadout-work://f/out/plot.png"
	picture := "\x89PNG\x00\xff\r\n"
	made := func(got string) ([]byte, error) {
		switch got {
		case link:
			return []byte(picture), nil
		case link + "?big":
			return make([]byte, workspace.MaxFile+1), nil
		}
		return nil, errors.New("there is no such file any more")
	}
	for _, tt := range []struct {
		name string
		made func(string) ([]byte, error)
		args map[string]any
		ok   bool
		want string
	}{
		{"a file", made, map[string]any{"path": "out/plot.png", "from": link}, true, "Wrote out/plot.png, 8 bytes."},
		{"a file, and no content", made, map[string]any{"path": "out/plot.png", "from": link, "content": ""}, true, "Wrote out/plot.png, 8 bytes."},
		{"both", made, map[string]any{"path": "out/plot.png", "from": link, "content": "x"}, false, "use only one"},
		{"neither", made, map[string]any{"path": "out/plot.png"}, false, "missing content"},
		{"an empty file", made, map[string]any{"path": "out/plot.png", "content": ""}, true, "0 bytes"},
		{"one that is gone", made, map[string]any{"path": "out/plot.png", "from": "loadout-work://f/other"}, false, "copy loadout-work://f/other: there is no such file any more"},
		{"too long", made, map[string]any{"path": "out/plot.png", "from": link + "?big"}, false, "too large"},
		{"outside", made, map[string]any{"path": "../plot.png", "from": link}, false, "not inside the folder"},
		{"a place for commands", made, map[string]any{"path": ".git/hooks/post-commit", "from": link}, false, "protected, because it controls"},
		{"without scripts", nil, map[string]any{"path": "out/plot.png", "from": link}, false, "scripts are disabled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call, dir := open(t, nil, &workspace.Options{ReadOutput: tt.made})
			text, ok := call("write_file", tt.args)
			if ok != tt.ok || !strings.Contains(text, tt.want) {
				t.Errorf("%v: %s", ok, text)
			}
			got, err := os.ReadFile(filepath.Join(dir, "out", "plot.png"))
			if (err == nil) != tt.ok || tt.ok && tt.args["from"] != nil && string(got) != picture {
				t.Errorf("there is %q, %v", got, err)
			}
		})
	}
}
