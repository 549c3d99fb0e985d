package loadout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// releasedNames lists the names of released JSON fields, paths and operations
// that differ from the terms of the project. They cannot change, so they occur
// in struct tags and paths only; identifiers use the term.
var releasedNames = []struct{ name, term, file string }{
	{"ask", "approval request", "internal/hub/chat/event.go"},
	{"ask", "requires approval", "internal/upstream/config.go"},
	{"asks", "approval requests", "internal/hub/sessionapi/approvals.go"},
	{"asks", "permissions", "internal/skilldiff/skilldiff.go"},
	{"brings", "provides tools", "internal/hub/library/meta.go"},
	{"brought", "dependencies", "internal/hub/chat/skills.go"},
	{"face", "interface", "internal/usage/usage.go"},
	{"faces", "interfaces", "internal/usage/report.go"},
	{"given", "has a value", "requested_services.go"},
	{"gone", "removed", "internal/skilldiff/skilldiff.go"},
	{"held", "pending tools", "internal/hub/agentapi/servers.go"},
	{"held-tools", "pending tools", "internal/hub/agentapi/server_live.go"},
	{"here", "existing skill", "internal/hub/library/import.go"},
	{"keep", "retention", "session/event.go"},
	{"kept", "saved", "cmd/loadout/hub_apply.go"},
	{"kept", "unchanged", "internal/skilldiff/skilldiff.go"},
	{"left", "turns left", "internal/hub/chat/active_skills.go"},
	{"left", "unsaved files", "run.go"},
	{"lender", "providing skill", "requested_services.go"},
	{"look", "inspect", "internal/hub/skillapi/imports.go"},
	{"looks", "target", "internal/scan/rule.go"},
	{"news", "changes of the catalog", "mcpserver/catalogtext.go"},
	{"notices", "notifications", "internal/hub/skillapi/notifications.go"},
	{"person_only", "for the user only", "internal/hub/library/meta.go"},
	{"told", "last event", "internal/hub/sessionapi/sessions.go"},
	{"unserved", "not served", "cmd/loadout/setup_doctor.go"},
	{"untold", "without token counts", "internal/hub/sessionapi/totals.go"},
	{"words", "comment", "internal/hub/skillapi/ratings.go"},
	{"words", "matched words", "internal/hub/chat/active_skills.go"},
}

func TestReleasedNamesAreTranslated(t *testing.T) {
	old := map[string]bool{}
	for _, r := range releasedNames {
		src, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(json:"|/)` + r.name + `[",/]`).Match(src) {
			t.Errorf("%s has no field or path %q (%s)", r.file, r.name, r.term)
		}
		if !common[r.name] {
			old[strings.ToUpper(r.name[:1])+r.name[1:]] = true
		}
	}
	files, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("the list of files needs Git: ", err)
	}
	fset := token.NewFileSet()
	for _, path := range strings.Fields(string(files)) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.FromSlash(path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				for _, id := range f.Names {
					if old[id.Name] {
						t.Errorf("%s: the name %s was released; identifiers use the term in releasedNames", fset.Position(id.Pos()), id.Name)
					}
				}
			}
			return true
		})
	}
}

// common are released names that are also words of other terms.
var common = map[string]bool{"ask": true, "face": true, "here": true, "keep": true, "left": true, "look": true, "looks": true, "notices": true, "words": true}
