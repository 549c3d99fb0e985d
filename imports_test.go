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

// banned lists the imports that a package must not reach, directly or
// indirectly, each with the reason. A key that ends in a slash is a prefix.
var banned = map[string]map[string]string{
	"skill": {
		module + "/":           "skill is the lowest package",
		"net":                  "parsing a skill needs no network",
		"os/exec":              "parsing a skill runs none of its code",
		"database/sql":         "a skill is files",
		"github.com/spf13/":    "a library does not know the command line",
		"github.com/fsnotify/": "the catalog watches files",
	},
	"internal/scan": {
		module + "/": "a scan is independent of catalogs, policies and users",
		"net/http":   "a scan needs no network",
		"os/exec":    "a scan starts no process",
	},
	"internal/detonation": {
		"net/http": "the proxy of the sandbox answers the requests of scripts",
		"os/exec":  "a sandbox starts the scripts",
	},
	"catalog": {
		module + "/session":   "a catalog is independent of sessions",
		module + "/mcpserver": "imports point down only",
		"net/http":            "sources that need HTTP have their own package",
		"os/exec":             "a catalog starts no process",
		"github.com/spf13/":   "a library does not know the command line",
	},
	"session": {
		module + "/catalog":   "a session uses its Skills interface, which a hub implements too",
		module + "/mcpserver": "imports point down only",
		"net/http":            "a transcript needs no network",
		"os/exec":             "a session starts no process",
	},
	".": {
		module + "/mcpserver":              "the embedding program chooses what to serve",
		module + "/internal/config":        "the library reads no configuration",
		module + "/internal/clientconfig":  "the library writes no other program's configuration",
		module + "/sandbox/":               "the embedding program chooses a backend and links no other",
		module + "/internal/sandbox/":      "the embedding program chooses a backend and links no other",
		"net/http":                         "the library opens no connection",
		"os/exec":                          "the library starts no process; its backend does",
		"database/sql":                     "embedders choose their own store",
		"html/template":                    "the library serves no page",
		"github.com/modelcontextprotocol/": "a program that does not serve MCP does not link it",
		"github.com/spf13/":                "a library does not know the command line",
		"github.com/anthropics/":           "no vendor is reachable from the library",
		"github.com/openai/":               "no vendor is reachable from the library",
	},
	"mcpserver": {
		module + "/agent":                 "imports point down only",
		module + "/internal/config":       "a server takes options, not configuration files",
		module + "/internal/clientconfig": "a server writes no client's configuration",
		"github.com/spf13/":               "a library does not know the command line",
	},
	"internal/config": {
		module + "/": "configuration is data; the command wires it",
		"net/http":   "configuration is local",
	},
	"internal/clientconfig": {
		module + "/": "client configuration files are data; the command wires it",
		"net/http":   "configuration is local",
	},
	"internal/clientimport": {
		module + "/":        "plans and writes files; the command asks and prints",
		"github.com/spf13/": "a library does not know the command line",
	},
	"internal/clientname": {
		module + "/": "reads messages; callers publish the name",
	},
	"internal/doctor": {
		module + "/internal/config": "inspects what the command opened",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/chatlog": {
		module + "/": "stores conversations; the command opens and shows them",
		"net/http":   "files are local",
		"os/exec":    "starts no process",
	},
	"internal/exit": {
		module + "/": "an exit code is independent of what failed",
		notStandard:  "an exit code is independent of what failed",
	},
	"internal/atomicfile": {
		module + "/": "writing a file needs no other package",
		notStandard:  "writing a file needs no other package",
	},
	"internal/bm25": {
		module + "/": "ranking is independent of skills",
		"net":        "ranking needs no network",
	},
	"internal/privatefile": {
		module + "/": "storing private files needs no other package",
		"net":        "reads local files only",
	},
	"internal/operator": {
		module + "/": "who may have written a file depends on nothing else",
		"net":        "reads a local file only",
	},
	"internal/pythonskill": {
		module + "/": "a declaration is read as text",
		"os/exec":    "reading a module runs none of its code",
	},
	"internal/audit": {
		module + "/": "a log stores decisions, whatever they are about",
		"net":        "a log is a local file",
	},
	"policy": {
		module + "/": "policy decides by digests and names, not by skills or sandboxes",
		"net":        "host names are compared, never resolved",
		"os/exec":    "decisions start no process",
	},
	"agent": {
		module + "/internal/config": "a library takes options, not configuration files",
		"github.com/anthropics/":    "an agent is independent of model vendors",
		"github.com/openai/":        "an agent is independent of model vendors",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/terminal": {
		module + "/internal/config": "takes options, not configuration files",
		"github.com/anthropics/":    "independent of model vendors",
		"github.com/openai/":        "independent of model vendors",
		"github.com/spf13/":         "the chat does not parse command lines",
	},
	"internal/chat": {
		module + "/internal/hub": "a hub has conversations of its own",
		"github.com/spf13/":      "the command parses flags",
	},
	"internal/console": {
		module + "/internal/config": "prints what a command found",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/hubclient": {
		module + "/internal/hub":    "a client knows the API, not the hub",
		module + "/internal/config": "takes options, not configuration files",
		"github.com/spf13/":         "the command parses flags",
	},
	"internal/setup": {
		module + "/internal/hub": "a hub has no setup of a user",
		"github.com/spf13/":      "the command parses flags",
	},
	"internal/stdio": {
		module + "/": "messages are passed on, whatever serves them",
	},
	"internal/toolset": {
		module:                   "the runtime is above it",
		module + "/tools":        "package tools sets its variables",
		module + "/session":      "a set of tools is independent of conversations",
		module + "/mcpserver":    "imports point down only",
		module + "/internal/hub": "imports point down only",
	},
	"internal/sources": {
		module:              "the runtime is above it",
		module + "/session": "a source is independent of conversations",
		"net/http":          "sources that need HTTP have their own package",
		"os/exec":           "finding skills starts no process",
	},
	"internal/workspace": {
		module + "/mcpserver": "imports point down only",
		module + "/tools":     "calls are authorized before they get here",
		"github.com/spf13/":   "a library does not know the command line",
	},
	"internal/approval": {
		module + "/": "requests and answers are data; callers show them",
		"net":        "callers pass answers",
		"os/exec":    "approval starts no process",
	},
	"sandbox": {
		module + "/": "the interface is independent of its implementations and of skills",
		"net/http":   "a backend chooses the proxy",
		"os/exec":    "backends start processes",
	},
	"sandbox/auto":               backendBans,
	"internal/sandbox/execute":   backendBans,
	"internal/sandbox/prepare":   backendBans,
	"internal/sandbox/selection": backendBans,
	"internal/sandbox/native":    backendBans,
	"internal/sandbox/bwrap":     backendBans,
	"internal/sandbox/container": backendBans,
	"internal/sandbox/landlock":  backendBans,
	"internal/sandbox/process":   backendBans,
	"internal/sandbox/seatbelt":  backendBans,
	"internal/sandbox/proxy": {
		module + "/": "the proxy enforces a list, whatever its origin",
		"os/exec":    "a proxy starts no process",
	},
	"internal/sandbox/stage": {
		module + "/": "runs before any other package is initialized",
		notStandard:  "the runtime initialises a package when what it imports is: anything else delays every run",
		"net":        "the first code in a sandbox must stay small",
		"net/http":   "the first code in a sandbox must stay small",
		"os/exec":    "starts commands by system calls",
	},
	"internal/filelock": {
		module + "/": "locking a file needs no other package",
		"net":        "reads local files only",
	},
	"internal/execution": {
		module:                             "the runtime is above what it runs",
		module + "/session":                "a run is independent of conversations",
		module + "/sandbox/":               "the caller chooses a backend",
		module + "/internal/sandbox/":      "the caller chooses a backend",
		module + "/internal/wasm":          "our executable runs modules, inside a sandbox",
		"net/http":                         "only a sandbox has a network",
		"os/exec":                          "the backend starts processes",
		"github.com/modelcontextprotocol/": "a service is a process, whatever connects to it",
		"github.com/spf13/":                "a library does not know the command line",
	},
	"internal/script": {
		module + "/": "plans depend on the skill and the host only",
		"net/http":   "reports what is missing, and installs nothing",
		"os/exec":    "plans how a script runs, and runs none",
	},
	"internal/packages": {
		module + "/": "installing packages needs a sandbox and a list",
		"net/http":   "registries are reached from within a sandbox, through its proxy",
		"os/exec":    "installers run in a sandbox",
	},
	"internal/upstream": {
		module + "/":        "connections are independent of skills, policy and users",
		"github.com/spf13/": "a library does not know the command line",
		"database/sql":      "callers store listings",
	},
	"internal/spawn": {
		module + "/":        "processes are started from a configuration; callers check permission",
		"github.com/spf13/": "a library does not know the command line",
	},
	"tools": {
		module + "/mcpserver":       "imports point down only",
		module + "/internal/config": "a library takes options, not configuration files",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/profile": {
		module + "/":        "a profile is data",
		"github.com/spf13/": "a library does not know the command line",
	},
	"internal/provider": {
		module + "/internal/upstream": "a provider is a command line, whatever connects to it",
		"net/http":                    "plans how code is started, and starts none",
		"os/exec":                     "plans how code is started, and starts none",
	},
	"internal/address": {
		module + "/": "checking an address needs no other package",
		notStandard:  "checking an address needs no other package",
	},
	"internal/configfile": {
		module + "/": "parsing is independent of skills",
		"net":        "reads local files only",
		"os/exec":    "parsing starts no process",
	},
	"internal/remote": {
		module + "/": "fetches files; other packages install and run them",
	},
	"internal/installed": {
		module + "/": "installed files are independent of their source",
	},
	"internal/install": {
		module + "/internal/config":   "takes options, not configuration files",
		module + "/internal/terminal": "the command shows plans and asks",
		"github.com/spf13/":           "a library does not know the command line",
	},
	"internal/superseded": {
		module + "/internal/setup": "takes the scopes as options",
		"net/http":                 "approvals are local files",
		"github.com/spf13/":        "a library does not know the command line",
	},
	"internal/review": {
		module + "/internal/config":   "takes options, not configuration files",
		module + "/internal/terminal": "the command shows reviews and asks",
		"github.com/spf13/":           "a library does not know the command line",
	},
	"internal/skillcheck": {
		module + "/": "checks read files only",
		"net/http":   "checks need no network",
		"os/exec":    "checks start no process",
	},
	"internal/trust": {
		module + "/internal/terminal": "the command shows projects and asks",
		"github.com/spf13/":           "a library does not know the command line",
	},
	"internal/signature": {
		module + "/": "signatures need manifests and keys only",
		"net":        "callers pass keys",
		"os/exec":    "checking starts no process",
	},
	"internal/skilltext": {
		module + "/": "rendering depends on the files of a skill only",
		"net/http":   "rendering needs no network",
		"os/exec":    "rendering starts no process",
	},
	"internal/skilldiff": {
		module + "/": "comparison is independent of installation and approval",
		"net/http":   "a comparison needs no network",
		"os/exec":    "a comparison starts no process",
	},
	"internal/store": {
		module + "/": "rows are plain data",
		"net/http":   "connects to databases only",
	},
	"internal/bus": {
		module + "/": "notifications carry no content",
		"net/http":   "connects to Redis only",
	},
	"internal/encryption": {
		module + "/": "encryption is independent of its content",
		"net/http":   "keys are local files",
		"os/exec":    "encryption starts no process",
	},
	"internal/telemetry": {
		module + "/":   "spans are made from arguments",
		"database/sql": "spans are made from arguments",
		"os/exec":      "starts no process",
	},
	"internal/hub/account": {
		module + "/store":   "callers pass rows of any database",
		module + "/catalog": "authorization is independent of skills",
		"database/sql":      "callers pass rows of any database",
		"os/exec":           "decisions start no process",
	},
	"internal/hub/endpoint": {
		module + "/":   "serving is independent of what operations do",
		"database/sql": "serving is independent of what operations do",
		"os/exec":      "serves requests only",
	},
	"internal/hub/api": {
		module + "/internal/hub":          "imports point down only",
		module + "/internal/hub/auth":     "operations take the principal from the context",
		module + "/internal/hub/skillapi": "resources use the API, not the reverse",
	},
	"internal/hub/skillapi": {
		module + "/internal/hub":      "imports point down only",
		module + "/internal/hub/auth": "operations take the principal from the context",
	},
	"internal/hub/accountapi": {
		module + "/internal/hub":            "imports point down only",
		module + "/internal/hub/agentapi":   "groups of resources are independent of each other",
		module + "/internal/hub/mcpapi":     "groups of resources are independent of each other",
		module + "/internal/hub/sessionapi": "groups of resources are independent of each other",
	},
	"internal/hub/agentapi": {
		module + "/internal/hub":            "imports point down only",
		module + "/internal/hub/mcpapi":     "groups of resources are independent of each other",
		module + "/internal/hub/sessionapi": "groups of resources are independent of each other",
	},
	"internal/hub/sessionapi": {
		module + "/internal/hub":          "imports point down only",
		module + "/internal/hub/agentapi": "groups of resources are independent of each other",
		module + "/internal/hub/mcpapi":   "groups of resources are independent of each other",
	},
	"internal/hub/mcpapi": {
		module + "/internal/hub":            "imports point down only",
		module + "/internal/hub/agentapi":   "groups of resources are independent of each other",
		module + "/internal/hub/sessionapi": "groups of resources are independent of each other",
	},
	"internal/hub/auth": {
		module + "/internal/hub":          "imports point down only",
		module + "/internal/hub/skillapi": "authentication is independent of resources",
	},
	"internal/hub/usage": {
		module + "/internal/hub/chat": "conversations pass what they count",
		module + "/mcpserver":         "endpoints pass what they count",
	},
	"internal/hub/metrics": {
		module + "/internal/hub":     "imports point down only",
		module + "/internal/hub/api": "events are counted, not served",
	},
	"internal/hub/credential": {
		module + "/internal/hub":     "imports point down only",
		module + "/internal/hub/api": "callers serve errors",
	},
	"internal/hub/page": {
		module + "/": "files are served as they are",
	},
	"internal/linediff": {
		module + "/": "compares two texts only",
	},
	"internal/filetype": {
		module + "/": "types depend on names and bytes only",
		notStandard:  "types depend on names and bytes only",
	},
	"internal/editdistance": {
		module + "/": "edit distance needs no other package",
		notStandard:  "edit distance needs no other package",
	},
	"internal/lazyregexp": {
		module + "/": "compiling needs no other package of ours",
		notStandard:  "compiling needs the standard library only",
	},
	"internal/toolname": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/printable": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/untrusted": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/skillname": {
		module + "/": "every package may import it",
		"net":        "names are text",
	},
	"internal/skillfile": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/skillpath": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/tokencount": {
		module + "/": "every package may import it",
		notStandard:  "every package may import it",
	},
	"internal/redact": {
		module + "/": "replacing text needs no other package of ours",
		notStandard:  "replacing text needs the standard library only",
	},
	"internal/rpcmessage": {
		module + "/": "messages are parsed independent of their content",
		"os/exec":    "parsing starts no process",
	},
	"internal/toolresult": {
		module + "/": "results are encoded independent of their content",
	},
	"internal/oauth": {
		module + "/":        "sign-in is independent of skills",
		"github.com/spf13/": "a library does not know the command line",
		"os/exec":           "the command opens the browser",
	},
	"internal/usage": {
		module + "/": "usage is counted by name",
		"net/http":   "usage data is not sent anywhere",
		"os/exec":    "counting starts no process",
	},
	"internal/serverskill": {
		module:                      "a runtime uses its sources",
		module + "/session":         "skills are independent of conversations",
		module + "/policy":          "the runtime decides what a skill may do",
		module + "/mcpserver":       "imports point down only",
		module + "/internal/config": "takes options, not configuration files",
		"github.com/spf13/":         "a library does not know the command line",
	},
	"internal/serverstate": {
		module + "/": "states are plain data",
		"net":        "reads local files only",
		"os/exec":    "inspects processes, and starts none",
	},
	"llm": {
		module + "/":            "models are independent of skills and tools",
		"net/http":              "vendors' packages connect to them",
		"github.com/anthropics": "a vendor has a package of its own",
		"github.com/openai":     "a vendor has a package of its own",
	},
	"llm/anthropic": {
		module + "/":        "a vendor's package depends on the model interface only",
		"github.com/openai": "each vendor has its own package",
	},
	"llm/openai": {
		module + "/":            "a vendor's package depends on the model interface only",
		"github.com/anthropics": "each vendor has its own package",
	},
	"internal/llm/vendors": {
		module + "/": "a list of vendors depends on their packages only",
	},
	"internal/llm/demo": {
		module + "/": "the demo depends on the model interface only",
		"net/http":   "needs no network",
	},
	"internal/llm/replay": {
		module + "/": "a recording depends on the model interface only",
		"net/http":   "replay needs no network",
		"os/exec":    "a recording is files",
	},
	"internal/wasm": {
		module + "/": "runs a module in its own process, inside a sandbox",
		"net/http":   "a module has no network",
		"os/exec":    "a module starts no process",
	},
}

// backendBans are the bans for all sandbox backends.
var backendBans = map[string]string{
	module:                      "a sandbox is below the runtime",
	module + "/skill":           "a sandbox gets files and hashes",
	module + "/catalog":         "a sandbox is independent of the catalog",
	module + "/session":         "a sandbox is independent of sessions",
	module + "/policy":          "the spec says what is allowed; a sandbox only enforces it",
	module + "/mcpserver":       "imports point down only",
	module + "/internal/script": "a sandbox gets a command line",
	"github.com/spf13/":         "a library does not know the command line",
	"database/sql":              "a sandbox stores nothing",
}

// notStandard bans all packages outside the standard library.
const notStandard = "…"

// leaves lists packages of constants and rules for text, files and addresses that import
// only each other. Every package may import them.
var leaves = []string{"internal/lazyregexp", "internal/semver", "internal/requirement", "internal/toolname", "internal/printable", "internal/untrusted", "internal/skillname", "internal/skillfile", "internal/skillpath", "internal/secretname", "internal/tokencount", "internal/address", "internal/fileerror", "internal/plainjson", "internal/procstat", "internal/retryafter", "internal/sandbox/mountpoint"}

// excepted lists our packages that a ban of the whole module still allows.
var excepted = map[string][]string{
	".":                     {"internal/sandbox/execute", "internal/sandbox/prepare"},
	"internal/execution":    {"internal/sandbox/execute", "internal/sandbox/prepare"},
	"internal/upstream":     {"skill", "internal/configfile", "internal/rpcmessage", "internal/toolresult", "internal/redact"},
	"internal/spawn":        {"skill", "internal/configfile", "internal/rpcmessage", "internal/toolresult", "internal/upstream", "internal/redact"},
	"internal/profile":      {"skill", "internal/upstream", "internal/configfile", "internal/rpcmessage", "internal/toolresult", "internal/redact"},
	"policy":                {"internal/filelock", "internal/privatefile"},
	"internal/privatefile":  {"internal/filelock"},
	"internal/pythonskill":  {"skill"},
	"internal/audit":        {"policy", "internal/filelock", "internal/privatefile"},
	"internal/oauth":        {"internal/filelock", "policy", "internal/privatefile"},
	"internal/usage":        {"internal/filelock", "llm", "session", "skill", "internal/skilltext"},
	"internal/serverstate":  {"internal/filelock", "policy", "internal/privatefile"},
	"internal/approval":     {"internal/filelock", "policy", "internal/privatefile"},
	"llm/anthropic":         {"llm", "internal/redact"},
	"llm/openai":            {"llm"},
	"internal/llm/vendors":  {"llm", "llm/anthropic", "llm/openai", "internal/llm/demo", "internal/redact"},
	"internal/llm/demo":     {"llm"},
	"internal/llm/replay":   {"llm"},
	"internal/script":       {"skill", "internal/editdistance"},
	"internal/packages":     {"skill", "sandbox", "internal/sandbox/execute", "internal/sandbox/prepare", "internal/script", "internal/editdistance", "internal/filelock", "internal/redact"},
	"internal/clientconfig": {"internal/linediff", "internal/redact", "internal/filelock"},
	"internal/clientimport": {"skill", "policy", "internal/privatefile", "internal/clientconfig", "internal/secrets", "internal/upstream", "internal/atomicfile", "internal/linediff", "internal/configfile", "internal/rpcmessage", "internal/toolresult", "internal/filelock", "internal/redact"},
	"internal/clientname":   {"skill"},
	"internal/stdio":        {"internal/rpcmessage"},
	"internal/toolresult":   {"internal/rpcmessage"},
	"internal/chatlog":      {"internal/transcript", "llm", "session", "skill", "internal/editdistance", "internal/filelock", "internal/skilltext"},
	"internal/scan":         {"skill"},
	"internal/encryption":   {"sandbox", "policy", "internal/privatefile", "internal/filelock", "internal/redact"},

	"internal/telemetry": {"llm", "session", "skill", "internal/filelock", "internal/skilltext"},

	"internal/remote":     {"skill", "policy", "internal/privatefile", "catalog", "internal/bm25", "internal/atomicfile", "internal/steering", "internal/editdistance", "internal/filelock"},
	"internal/installed":  {"skill", "policy", "internal/privatefile", "catalog", "internal/remote", "internal/bm25", "internal/atomicfile", "internal/steering", "internal/editdistance", "internal/filelock"},
	"internal/signature":  {"skill", "policy", "internal/privatefile", "internal/filelock"},
	"internal/skilltext":  {"skill"},
	"internal/skillcheck": {"skill", "internal/scan", "internal/editdistance"},
	"internal/skilldiff":  {"skill", "internal/scan", "policy", "internal/requestedbounds", "internal/privatefile", "internal/linediff", "internal/filelock"},
}

// reaches reports whether a ban applies to a dependency.
func reaches(pkg, dep, ban string) bool {
	switch {
	case slices.Contains(leaves, strings.TrimPrefix(dep, module+"/")):
		return false
	case ban == notStandard:
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".")
	case strings.HasSuffix(ban, "/"):
		return strings.HasPrefix(dep, ban) && !slices.Contains(excepted[pkg], strings.TrimPrefix(dep, module+"/"))
	}
	return dep == ban
}

func TestImportsPointDown(t *testing.T) {
	args := []string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`}
	for pkg := range banned {
		args = append(args, "./"+pkg)
	}
	out, err := exec.Command("go", args...).Output() // one call loads all packages once
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		deps[words[0]] = words[1:]
	}
	for pkg, bans := range banned {
		t.Run(pkg, func(t *testing.T) {
			self := path.Join(module, pkg)
			if _, ok := deps[self]; !ok {
				t.Fatalf("go list did not list %s", self)
			}
			for _, dep := range deps[self] {
				if pkg != "." && strings.HasPrefix(dep, self+"/internal") {
					continue
				}
				if dep == module+"/docs" {
					continue // embedded files only
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

// Every package has a doc comment.
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

// All files of a directory belong to one package, whatever system they are for.
func TestDirectoriesHoldOnePackage(t *testing.T) {
	names := map[string]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		dir, name := filepath.Dir(p), strings.TrimSuffix(f.Name.Name, "_test")
		if names[dir] == "" {
			names[dir] = name
		}
		if name != names[dir] {
			t.Errorf("%s is of package %s, others in its directory are of package %s", p, name, names[dir])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
