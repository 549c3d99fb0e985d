package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The table of the OWASP Agentic Skills Top 10 has each risk, and the tests that it
// names exist.
func TestOWASPTable(t *testing.T) {
	var risks []string
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	sources := testSources(t)
	for line := range strings.Lines(readFile(t, "trust.md")) {
		id, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " ")
		if !ok || !strings.HasPrefix(id, "AST") {
			continue
		}
		risks = append(risks, id)
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", id)
		}
		for _, m := range tests {
			if !strings.Contains(sources, "\nfunc "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", id, m[1])
			}
		}
	}
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("AST%02d", i+1))
	}
	if strings.Join(risks, " ") != strings.Join(want, " ") {
		t.Errorf("the table has %v, want %v", risks, want)
	}
}

// testSources returns the text of all tests of the module.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := fs.ReadFile(root, path)
		all.Write(append([]byte("\n"), data...))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
