package account_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page names the actions of the audit log, and its filter offers only those with a name.
func TestEveryActionHasALabel(t *testing.T) {
	action := regexp.MustCompile(`"((?:ask|audit|default|folder|grant|group|hub|kind|mcp|meter|notice|secret|server|session|settings|share|skill|token|tool|usage|user)\.[a-z_.]+)"`)
	others := map[string]bool{ // files and notifications
		"hub.db": true, "server.json": true,
		"skill.removed": true, "skill.upstream": true, "skill.version": true,
	}
	labels := map[string]string{}
	text, err := os.ReadFile("../../../web/src/shared/i18n/en.json")
	if err == nil {
		err = json.Unmarshal(text, &labels)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range action.FindAllSubmatch(source, -1) {
			name := string(m[1])
			found++
			if labels["audit.actions."+name] == "" && !others[name] {
				t.Errorf("%s: no label audit.actions.%s in web/src/shared/i18n", path, name)
			}
		}
		return nil
	})
	if err != nil || found < 60 {
		t.Fatalf("found %d actions: %v", found, err)
	}
}
