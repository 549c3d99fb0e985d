package loadout_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
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
	"scan": {
		module + "/": "what is in files is found without knowing catalogs, policies or people",
		"net/http":   "a scan looks nothing up",
		"os/exec":    "a scan runs nothing",
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
		module + "/sandbox/":               "a program that embeds it chooses the back end, and links no other",
		"net/http":                         "the library opens no connection",
		"os/exec":                          "the library starts no process; the back end that it is given does",
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
	"policy": {
		module + "/": "whether something is allowed is a question of digests and names, not of skills or sandboxes",
		"net":        "names of hosts are compared, never looked up",
		"os/exec":    "deciding runs nothing",
	},
	"agent": {
		module + "/mcpserver":       "an agent is given tools, of whatever server",
		module + "/internal/config": "a library is given options, not configuration files",
		"github.com/anthropics/":    "an agent knows no vendor",
		"github.com/openai/":        "an agent knows no vendor",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/terminal": {
		module + "/mcpserver":       "what a person sees does not depend on who serves it",
		module + "/internal/config": "it is given options, not configuration files",
		"github.com/anthropics/":    "it knows no vendor",
		"github.com/openai/":        "it knows no vendor",
		"github.com/spf13/":         "what is typed in a conversation is no command line",
	},
	"workspace": {
		module + "/mcpserver": "arrows go down only",
		module + "/tools":     "whether a call may be made is decided before it gets here",
		"github.com/spf13/":   "a library does not know the command line",
	},
	"ask": {
		module + "/": "what is asked and answered is data; who shows it is the caller's",
		"net":        "an answer comes from the caller",
		"os/exec":    "asking starts nothing",
	},
	"sandbox": {
		module + "/": "what a sandbox is depends on no way to make one, and on no skill",
		"net/http":   "the proxy is chosen by a back end",
		"os/exec":    "starting processes is the back ends'",
	},
	"sandbox/auto":      backEnd,
	"sandbox/native":    backEnd,
	"sandbox/bwrap":     backEnd,
	"sandbox/container": backEnd,
	"sandbox/landlock":  backEnd,
	"sandbox/process":   backEnd,
	"sandbox/seatbelt":  backEnd,
	"sandbox/proxy": {
		module + "/": "what passes is decided by a list; whose list it is does not matter",
		"os/exec":    "a proxy runs nothing",
	},
	"internal/stage": {
		module + "/": "it is at work before anything else of ours has been initialised",
		notStandard:  "the runtime initialises a package when what it imports is: anything else delays every run",
		"net":        "it is small, and the first code in a sandbox",
		"net/http":   "it is small, and the first code in a sandbox",
		"os/exec":    "it starts commands itself, by system calls",
	},
	"internal/filelock": {
		module + "/": "locking a file needs nothing of ours",
		"net":        "files are local",
	},
	"internal/script": {
		module + "/": "how a script is run is read from the skill and the host, and nobody is asked",
		"net/http":   "it says what has to be installed, and installs nothing",
		"os/exec":    "it says how to run a script, and runs none",
	},
	"internal/install": {
		module + "/": "installing packages needs a sandbox and a list, and no skill by name",
		"net/http":   "registries are reached from inside a sandbox, by its proxy",
		"os/exec":    "installers run in a sandbox",
	},
	"upstream": {
		module + "/":        "servers are configured and connected without knowing skills, policy or people",
		"github.com/spf13/": "a library does not know the command line",
		"database/sql":      "listings are kept where the caller says",
	},
	"internal/spawn": {
		module + "/":        "a process is started from a server's configuration, and by nobody's leave here",
		"github.com/spf13/": "a library does not know the command line",
	},
	"tools": {
		module + "/mcpserver":       "arrows go down only",
		module + "/internal/spawn":  "how a command is started is a function that the pool is given",
		module + "/internal/config": "a library is given options, not configuration files",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"profile": {
		module + "/":        "a profile is data",
		"github.com/spf13/": "a library does not know the command line",
	},
	"provider": {
		module + "/upstream": "a provider is a command line; who speaks with it does not matter",
		"net/http":           "it says how code is started, and starts none",
		"os/exec":            "it says how code is started, and starts none",
	},
	"internal/address": {
		module + "/": "whether an address is public needs nothing of skills",
		notStandard:  "whether an address is public needs nothing of skills",
	},
	"internal/tree": {
		module + "/": "reading JSON, YAML and TOML needs nothing of skills",
		"net":        "files are local",
		"os/exec":    "reading starts nothing",
	},
	"remote": {
		module + "/": "it gets files and gives them back: installing, approving and running them is others'",
	},
	"installed": {
		module + "/": "it keeps files and what they have to be: where they are from is data to it",
	},
	"signature": {
		module + "/": "who signed which files is all that it knows",
		"net":        "keys are given to it, and looked up nowhere",
		"os/exec":    "checking runs nothing",
	},
	"skilldiff": {
		module + "/": "it compares files, and knows neither what is installed nor what was approved",
		"net/http":   "a comparison looks nothing up",
		"os/exec":    "a comparison runs nothing",
	},
	"internal/store": {
		module + "/": "rows are plain: what they mean is for those who keep something in them",
		"net/http":   "it speaks to databases alone",
	},
	"internal/bus": {
		module + "/": "it tells that something happened, and knows nothing of what",
		"net/http":   "it speaks to Redis alone",
	},
	"internal/seal": {
		module + "/": "it seals what it is given, whoever it is of",
		"net/http":   "keys are files, and stay here",
		"os/exec":    "sealing runs nothing",
	},
	"internal/telemetry": {
		module + "/":   "it makes spans of what it is told, and asks nobody",
		"database/sql": "it makes spans of what it is told, and asks nobody",
		"os/exec":      "it starts nothing",
	},
	"internal/account": {
		module + "/store":   "it is given rows, of whatever database",
		module + "/catalog": "who may do what is decided without knowing a skill",
		"database/sql":      "it is given rows, of whatever database",
		"os/exec":           "deciding runs nothing",
	},
	"internal/linediff": {
		module + "/": "two texts are all that it knows",
	},
	"internal/near": {
		module + "/": "how far two names are apart needs nothing of skills",
		notStandard:  "how far two names are apart needs nothing of skills",
	},
	"internal/pattern": {
		module + "/": "compiling an expression needs nothing of ours",
		notStandard:  "compiling an expression needs nothing of others",
	},
	"internal/message": {
		module + "/": "a message is read and written without knowing what it is about",
		"os/exec":    "reading starts nothing",
	},
	"internal/oauth": {
		module + "/":        "signing in needs a person's name and an address, and no skill",
		"github.com/spf13/": "a library does not know the command line",
		"os/exec":           "who opens a browser is the command",
	},
	"internal/usage": {
		module + "/": "what is used is counted by names, and nothing of it is looked up",
		"net/http":   "what is counted is sent nowhere",
		"os/exec":    "counting starts nothing",
	},
	"internal/running": {
		module + "/": "states are told and read as data",
		"net":        "files are local",
		"os/exec":    "a process is looked at, and none started",
	},
	"llm": {
		module + "/":            "a model is asked without knowing skills or tools of ours",
		"net/http":              "how a vendor is reached is its package's",
		"github.com/anthropics": "a vendor has a package of its own",
		"github.com/openai":     "a vendor has a package of its own",
	},
	"llm/anthropic": {
		module + "/":        "a vendor's package knows the model interface alone",
		"github.com/openai": "one vendor, one package",
	},
	"llm/openai": {
		module + "/":            "a vendor's package knows the model interface alone",
		"github.com/anthropics": "one vendor, one package",
	},
	"llm/demo": {
		module + "/": "a demonstration knows the model interface alone",
		"net/http":   "it needs no network",
	},
	"llm/replay": {
		module + "/": "a recording knows the model interface alone, and so no key",
		"net/http":   "what is replayed needs no network",
		"os/exec":    "a recording is files",
	},
	"internal/wasm": {
		module + "/": "it runs a module in a process of its own, inside a sandbox that others made",
		"net/http":   "a module has no network",
		"os/exec":    "a module starts no process",
	},
}

// backEnd are the bans of every way to isolate.
var backEnd = map[string]string{
	module:                      "a sandbox is below the runtime",
	module + "/skill":           "a sandbox gets files and hashes, and knows no skill",
	module + "/catalog":         "a sandbox knows no names",
	module + "/session":         "a sandbox knows no conversation",
	module + "/policy":          "what was allowed is in the spec; a sandbox enforces and does not decide",
	module + "/mcpserver":       "arrows go down only",
	module + "/internal/script": "a sandbox gets a command line",
	"github.com/spf13/":         "a library does not know the command line",
	"database/sql":              "a sandbox keeps nothing",
}

// notStandard as a ban is every package outside the standard library.
const notStandard = "…"

// excepted are packages that a ban of all of ours leaves.
var excepted = map[string][]string{
	"sandbox/proxy":    {"internal/address"},
	"upstream":         {"skill", "internal/tree", "internal/address", "internal/message", "internal/pattern"},
	"internal/spawn":   {"skill", "internal/tree", "internal/address", "internal/message", "upstream", "internal/pattern"},
	"profile":          {"skill", "upstream", "internal/tree", "internal/address", "internal/message", "internal/pattern"},
	"policy":           {"internal/filelock", "internal/pattern"},
	"internal/oauth":   {"internal/filelock", "internal/address", "policy", "internal/pattern"},
	"internal/usage":   {"internal/filelock", "llm"},
	"internal/running": {"internal/filelock", "policy", "internal/pattern"},
	"ask":              {"internal/filelock", "policy", "internal/pattern"},
	"llm/anthropic":    {"llm"},
	"llm/openai":       {"llm"},
	"llm/demo":         {"llm", "internal/pattern"},
	"llm/replay":       {"llm", "internal/pattern"},
	"internal/script":  {"skill", "internal/near", "internal/pattern"},
	"internal/install": {"skill", "sandbox", "internal/script", "internal/near", "internal/filelock", "internal/pattern"},
	"internal/client":  {"internal/linediff", "internal/pattern"},
	"scan":             {"skill", "internal/pattern"},
	"internal/seal":    {"sandbox", "policy", "internal/filelock", "internal/pattern"},

	"internal/telemetry": {"llm", "session", "skill", "internal/filelock", "internal/pattern"},

	"remote":    {"skill", "policy", "catalog", "internal/bm25", "internal/near", "internal/address", "internal/filelock", "internal/pattern"},
	"installed": {"skill", "policy", "catalog", "remote", "internal/bm25", "internal/near", "internal/address", "internal/filelock", "internal/pattern"},
	"signature": {"skill", "policy", "internal/filelock", "internal/pattern"},
	"skilldiff": {"skill", "scan", "policy", "internal/linediff", "internal/filelock", "internal/pattern"},
}

// reaches reports whether a dependency is one that a ban means.
func reaches(pkg, dep, ban string) bool {
	switch {
	case ban == notStandard:
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".")
	case strings.HasSuffix(ban, "/"):
		return strings.HasPrefix(dep, ban) && !slices.Contains(excepted[pkg], strings.TrimPrefix(dep, module+"/"))
	}
	return dep == ban
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
				if dep == self || pkg != "." && strings.HasPrefix(dep, self+"/internal") {
					continue
				}
				for ban, reason := range bans {
					if reaches(pkg, dep, ban) {
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
