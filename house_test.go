package loadout_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/loadout-dev/loadout"

// banned are imports that a package must not reach, directly or through
// others, each with the reason.
var banned = map[string]map[string]string{
	"skill": {
		module + "/":              "skill is the lowest package: it knows nothing of the others",
		"net":                     "reading a skill does no network I/O",
		"os/exec":                 "nothing of a skill is run while it is read",
		"database/sql":            "a skill is files",
		"github.com/spf13/":       "a library does not know the command line",
		"github.com/fsnotify/":    "watching is the catalog's",
		"github.com/Masterminds/": "versions are resolved by the catalog",
	},
	"catalog": {
		module + "/session":   "a catalog knows no conversation",
		module + "/mcpserver": "arrows go down only",
		"net/http":            "sources that need HTTP are packages of their own",
		"os/exec":             "a catalog runs nothing",
		"github.com/spf13/":   "a library does not know the command line",
	},
	"session": {
		module + "/catalog":   "a session asks its Skills interface, so that a hub can answer it",
		module + "/mcpserver": "arrows go down only",
		"net/http":            "a transcript is not served",
		"os/exec":             "a session runs nothing",
	},
	".": {
		module + "/mcpserver":              "the library does not serve; a program that embeds it chooses to",
		module + "/internal/config":        "the library reads no configuration",
		module + "/internal/client":        "the library writes no other program's configuration",
		"net/http":                         "the library opens no connection",
		"database/sql":                     "embedders choose their own store",
		"html/template":                    "there is no page in the library",
		"github.com/modelcontextprotocol/": "a program that does not serve MCP does not link it",
		"github.com/spf13/":                "a library does not know the command line",
		"github.com/anthropics/":           "no vendor is reachable from the library",
		"github.com/openai/":               "no vendor is reachable from the library",
	},
	"mcpserver": {
		module + "/internal/config": "a server is given options, not configuration files",
		module + "/internal/client": "a server writes no client's configuration",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/config": {
		module + "/": "configuration is data; the command wires it",
		"net/http":   "configuration is local",
	},
	"internal/client": {
		module + "/": "client configuration files are data; the command wires it",
		"net/http":   "configuration is local",
	},
	"internal/bm25": {
		module + "/": "ranking texts needs nothing of skills",
		"net":        "ranking is local",
	},
}

func TestArrowsGoDownOnly(t *testing.T) {
	for pkg, bans := range banned {
		t.Run(pkg, func(t *testing.T) {
			out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", "./"+pkg).Output()
			if err != nil {
				t.Fatalf("go list: %v", err)
			}
			self := path.Join(module, pkg)
			for dep := range strings.Lines(string(out)) {
				dep = strings.TrimSpace(dep)
				if dep == self || strings.HasPrefix(dep, self+"/internal") {
					continue
				}
				for ban, reason := range bans {
					if dep == ban || strings.HasSuffix(ban, "/") && strings.HasPrefix(dep, ban) {
						t.Errorf("%s reaches %s: %s", pkg, dep, reason)
					}
				}
			}
		})
	}
}

// Every package says in its comment what it is for.
func TestEveryPackageIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go"):
			return nil
		}
		dir := filepath.Dir(p)
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		documented[dir] = documented[dir] || f.Doc != nil && len(f.Doc.Text()) > 40
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no comment that says what it is for", dir)
		}
	}
}
