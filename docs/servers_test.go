package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// The servers of docs/servers.md are read as they stand, and one that it signs in
// to is there and has no header that forbids it.
func TestServersPageExamples(t *testing.T) {
	p := readPage(t, "docs/servers.md")
	var servers []*upstream.Config
	for _, b := range p.blocks {
		text := strings.Join(b.text, "\n")
		if b.info != "yaml" || !strings.HasPrefix(text, "mcpServers:\n") {
			continue
		}
		f, findings := upstream.Parse([]byte(text), upstream.ParseOptions{Name: "servers.yaml"})
		if len(findings) > 0 {
			t.Errorf("%s: %v", p.at(b.first), findings)
		}
		servers = append(servers, f.Servers...)
	}
	login := regexp.MustCompile(`(?m)^loadout servers login ([a-z]+)`).FindAllStringSubmatch(strings.Join(p.lines, "\n"), -1)
	if len(login) == 0 || len(servers) == 0 {
		t.Fatalf("%d logins, %d servers", len(login), len(servers))
	}
	for _, m := range login {
		found := false
		for _, s := range servers {
			if s.Name != m[1] {
				continue
			}
			found = true
			if len(s.URLs) == 0 || s.Headers["Authorization"] != "" {
				t.Errorf("loadout servers login %s: %v with headers %v is not signed in to", m[1], s.URLs, s.Headers)
			}
		}
		if !found {
			t.Errorf("loadout servers login %s: the page has no server of that name", m[1])
		}
	}
}

// README.md names every command, and stays short.
func TestReadmeNamesEveryCommand(t *testing.T) {
	p := readPage(t, "README.md")
	if len(p.lines) > 110 {
		t.Errorf("it has %d lines: move something into docs", len(p.lines))
	}
	text := strings.Join(p.lines, "\n")
	for name := range commands(t) {
		if name == "" || strings.Contains(name, " ") || slices.Contains([]string{"help", "completion", "version"}, name) {
			continue
		}
		if !strings.Contains(text, "`loadout "+name) && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("it says nothing of loadout %s", name)
		}
	}
}

// docs/embedding.md says what each package is for.
func TestEveryPackageIsListed(t *testing.T) {
	var found []string
	for name := range readPage(t, "docs/embedding.md").rows("package", "for") {
		found = append(found, name)
	}
	want := []string{"loadout"}
	dirs, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		src, err := filepath.Glob(filepath.Join("..", d.Name(), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(src) > 0 && d.Name() != "docs" && d.Name() != "web" { // the page is for browsers
			want = append(want, d.Name())
		}
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("the table has %q, and there are %q", found, want)
	}
}
