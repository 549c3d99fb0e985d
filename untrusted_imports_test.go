package loadout_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// textReaders lists the packages that give text of others to a reader, and the
// reader. They must clean it with package untrusted.
var textReaders = map[string]string{
	"agent":                   "models",
	"catalog":                 "models, in lists of skills",
	"cmd/loadout":             "terminals, and agents that run commands",
	"internal/approval":       "terminals and the page, in requests",
	"internal/console":        "terminals and logs",
	"internal/hub/accountapi": "the page",
	"internal/hub/agentapi":   "the page",
	"internal/hub/api":        "the page, in errors",
	"internal/hub/library":    "the page",
	"internal/hub/mcpapi":     "clients of a hub",
	"internal/hub/skillapi":   "the page, and other hubs",
	"internal/hub/users":      "the page",
	"internal/setup":          "logs",
	"internal/skilltext":      "models, in instructions",
	"internal/terminal":       "terminals",
	"internal/transcript":     "files that users read",
	"internal/upstream":       "models, from MCP servers",
	"mcpserver":               "clients and their models",
	"session":                 "models, in transcripts",
}

func TestReadersGetCleanedText(t *testing.T) {
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}
	for pkg := range textReaders {
		args = append(args, "./"+pkg)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module+"/")
		if !slices.Contains(words[1:], module+"/internal/untrusted") {
			t.Errorf("%s gives text to %s, and does not import internal/untrusted", pkg, textReaders[pkg])
		}
	}
}

// hiddenTables matches code with a table of hidden characters of its own.
var hiddenTables = regexp.MustCompile(`unicode\.(Cf|Bidi_Control|Variation_Selector|Other_Default_Ignorable_Code_Point)\b|\b0x20(0[b-fB-F]|2[a-eA-E])\b|\b0xe00[0-7][0-9a-f]\b|\bansi\.Strip\b`)

// ownTables lists the files with such a table, each with the reason.
var ownTables = map[string]string{
	"internal/bm25/lexer.go":            "splits words for a search",
	"internal/scan/characters.go":       "names the characters in its findings",
	"internal/clientconfig/document.go": "escapes characters in the files of clients",
	"internal/skillpath/skillpath.go":   "rejects paths",
	"internal/steering/steering.go":     "compares names as programs do that ignore such characters",
	"internal/terminal/filter.go":       "filters the output of scripts, of which it sees parts",
}

// One table decides which characters a reader does not get.
func TestOneTableOfHiddenCharacters(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path == "internal/untrusted" || len(path) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if at := hiddenTables.Find(text); at != nil {
			found[path] = true
			if ownTables[path] == "" {
				t.Errorf("%s has a table of hidden characters (%s): use internal/untrusted", path, at)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range ownTables {
		if !found[path] {
			t.Errorf("%s has no table of hidden characters: remove it from ownTables", path)
		}
	}
}
