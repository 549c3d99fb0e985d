//go:build linux

package main

import "slices"

// program is a call of a benchmark program. Several rows are taken from it.
type program struct {
	name string   // of the program, as in go run ./NAME
	args []string // arguments without the rounds; a word such as sk-17 is a generated directory of skills
	// rounds is the flag for the number of rounds, with its values for a complete and a quick run.
	rounds      string
	many, quick int
	passes      int  // how often a complete run calls the program; 0 means 3
	slow        bool // runs only with -build
	peers       []string
}

// The calls of programs. A run calls all of them in this order, and then again, so that a change
// of the machine's speed does not affect one of them only.
var programs = map[string]program{
	"build":   {name: "build", rounds: "-rounds", passes: 1},
	"cold":    {name: "build", rounds: "-rounds", many: 1, quick: 1, passes: 1, slow: true},
	"start":   {name: "start", args: []string{"-skills", "sk-17", "-skills", "sk-10000"}, rounds: "-rounds", many: 9, quick: 1},
	"sandbox": {name: "sandbox", rounds: "-rounds", many: 15, quick: 2},
	"catalog": {name: "catalog", args: []string{"-dir", "sk-10000"}, rounds: "-rounds", many: 5, quick: 1, peers: []string{"adk-go", "crush"}},
	"mcp":     {name: "mcp", args: []string{"-skills", "sk-10000", "-idle", "sk-17"}, rounds: "-calls", many: 100, quick: 20, passes: 1},
	"upstream": {name: "upstream", args: []string{"-starts", "5"}, rounds: "-rounds", many: 5, quick: 1,
		peers: []string{"mcp-proxy", "docker"}},
	"served": {name: "servedskills", rounds: "-rounds", many: 7, quick: 1, passes: 1},
	"idle":   {name: "hub", args: []string{"-idle"}, rounds: "-rounds", many: 3, quick: 1},
	"hub":    {name: "hub", args: []string{"-mcp", "-n", "1000", "-users", "20", "-on", "SQLite"}, rounds: "-rounds", many: 3, quick: 1, passes: 1},
	"turns":  {name: "hub", args: []string{"-turns", "50", "-on", "SQLite"}, rounds: "-rounds", many: 1, quick: 1, passes: 1},
	"scan":   {name: "scan", args: []string{"-speed", "sk-1000"}, rounds: "-rounds", many: 3, quick: 1, passes: 1},
	"zip":    {name: "zip", args: []string{"-skills", "sk-1000"}, rounds: "-rounds", many: 5, quick: 1, passes: 1},
	"add":    {name: "add", args: []string{"-skills", "sk-1000", "-n", "100"}, rounds: "-rounds", many: 2, quick: 1, passes: 1},
}

// skillSets lists the generated directories with the number of their skills. Files other than
// SKILL.md have a twentieth of their usual size, because little is read of them.
var skillSets = map[string]int{"sk-17": 17, "sk-1000": 1000, "sk-10000": 10000}

// measureOf says what a row reports.
type measureOf int

const (
	value measureOf = iota // the median
	added                  // the median less that of the limit
	ratio                  // the median of the ratios to the limit
)

// row is a row of a table in README.md. Its limit is the least that any program would need for the
// same work: a baseline measured in the same run.
type row struct {
	key     string // names the row in results.json and on the command line
	figure  string // what is measured, in Markdown
	program string // key of the program
	record  string // name of the record that the program prints
	of      measureOf
	limit   string            // record of the limit; "" if there is none
	peers   map[string]string // records by name of the peer
	goal    float64           // maximum; 0 if none
	below   string            // peer whose figure is the maximum; "" if none
}

// subject is a table in README.md.
type subject struct {
	name string
	rows []row
}

// bwrap returns the peer of a row of the sandbox.
func bwrap(record string) map[string]string { return map[string]string{"bwrap": record} }

const trivial = "baseline: a Go program that prints a word"

var subjects = []subject{
	{"Program", []row{
		{key: "size", figure: "stripped program", program: "build", record: "size: loadout", limit: "size: baseline: a program that links net/http", goal: 55},
		{key: "build", figure: "build from an empty cache, CPU", program: "cold", record: "CPU: loadout", limit: "CPU: baseline: a program that links net/http", goal: 250},
		{key: "version", figure: "`loadout version`, wall", program: "start", record: "wall: loadout version", limit: "wall: " + trivial, goal: 8},
		{key: "version-cpu", figure: "the same, CPU", program: "start", record: "CPU: loadout version", limit: "CPU: " + trivial},
		{key: "mcp-17", figure: "`loadout mcp` to the first tools/list, 17 skills, wall", program: "start", record: "wall: loadout mcp, 17 skills, saved index: initialize, tools/list", limit: "wall: " + trivial, goal: 15},
		{key: "mcp-10000", figure: "the same, 10,000 skills", program: "start", record: "wall: loadout mcp, 10000 skills, saved index: initialize, tools/list", limit: "wall: " + trivial, goal: 40},
		{key: "mcp-10000-first", figure: "the same, without a saved index", program: "start", record: "wall: loadout mcp, 10000 skills, no index: initialize, tools/list", limit: "wall: " + trivial},
		{key: "mcp-idle-17", figure: "idle `loadout mcp`, 17 skills, resident", program: "mcp", record: "idle: loadout mcp, 17 skills", limit: "idle: baseline: a server of the bare SDK with one tool"},
		{key: "mcp-idle-10000", figure: "the same, 10,000 skills", program: "mcp", record: "idle: loadout mcp, 10000 skills", limit: "idle: baseline: a server of the bare SDK with one tool"},
	}},
	{"Sandbox", []row{
		{key: "run", figure: "`loadout run` of `exit 0`, wall", program: "sandbox", record: "wall: exit 0: loadout run", limit: "wall: exit 0: plain exec", peers: bwrap("wall: exit 0: plain bwrap"), goal: 40},
		{key: "run-cpu", figure: "the same, CPU", program: "sandbox", record: "CPU: exit 0: loadout run", limit: "CPU: exit 0: plain exec", peers: bwrap("CPU: exit 0: plain bwrap"), goal: 25},
		{key: "true-native", figure: "`true`, native", program: "sandbox", record: "wall: true: native", limit: "wall: true: plain exec", peers: bwrap("wall: true: plain bwrap"), goal: 8},
		{key: "true-bwrap", figure: "`true`, backend bwrap", program: "sandbox", record: "wall: true: backend bwrap", limit: "wall: true: plain exec", peers: bwrap("wall: true: plain bwrap"), goal: 20},
		{key: "true-prepared", figure: "`true`, in a prepared sandbox", program: "sandbox", record: "wall: true: in a prepared sandbox", limit: "wall: true: plain exec"},
		{key: "python-native", figure: "`python3 -c pass`, native, × limit", program: "sandbox", record: "wall: python3: native", of: ratio, limit: "wall: python3: plain exec", peers: bwrap("wall: python3: plain bwrap"), goal: 1.5},
		{key: "python-prepared", figure: "`python3 -c pass`, in a prepared sandbox, × limit", program: "sandbox", record: "wall: python3: in a prepared sandbox", of: ratio, limit: "wall: python3: plain exec"},
		{key: "script-first", figure: "run_skill_script of `exit 0` over MCP, first call", program: "sandbox", record: "wall: exit 0: run_skill_script, first call", limit: "wall: exit 0: plain exec", goal: 12},
		{key: "script-next", figure: "the same, next calls", program: "sandbox", record: "wall: exit 0: run_skill_script, next call", limit: "wall: exit 0: plain exec", goal: 5},
		{key: "wasm", figure: "a small WebAssembly module from the cache; limit: `loadout version` there", program: "sandbox", record: "wall: tiny.wasm (0 KB) from the cache", limit: "wall: loadout version, in a prepared sandbox"},
	}},
	{"Catalog", []row{
		{key: "scan", figure: "scan of 10,000 skills, warm, CPU, × limit", program: "catalog", record: "first scan", of: ratio, limit: "baseline: the same, and find name and description",
			peers: map[string]string{"adk-go": "peer adk-go: scan", "crush": "peer crush: scan"}, goal: 2.5},
		{key: "scan-cpu", figure: "the same, CPU", program: "catalog", record: "first scan", limit: "baseline: the same, and find name and description",
			peers: map[string]string{"adk-go": "peer adk-go: scan", "crush": "peer crush: scan"}},
		{key: "restart", figure: "restart from the saved index, CPU, × limit", program: "catalog", record: "restart from the saved index", of: ratio, limit: "baseline: stat each SKILL.md", goal: 1.6},
		{key: "rescan", figure: "scan again after one change, CPU, × limit", program: "catalog", record: "scan again after one change", of: ratio, limit: "baseline: stat each SKILL.md", goal: 1.4},
		{key: "activation", figure: "activation of 15 KB, library, CPU", program: "catalog", record: "activation of it, with known token count", limit: "baseline: read a SKILL.md of about 15 KB",
			peers: map[string]string{"adk-go": "peer adk-go: activation", "crush": "peer crush: activation"}, goal: 45},
		{key: "activation-first", figure: "the same, for the first time", program: "catalog", record: "activation of it for the first time", limit: "baseline: read a SKILL.md of about 15 KB"},
		{key: "catalog-text", figure: "catalog text of 10,000 skills, CPU", program: "catalog", record: "catalog text of everything"},
		{key: "heap", figure: "heap of the catalog of 10,000", program: "catalog", record: "memory: heap of the catalog", limit: "memory: baseline: heap of names and descriptions"},
		{key: "peak", figure: "peak of a process that scans once", program: "catalog", record: "memory: peak", limit: "memory: baseline: peak"},
		{key: "security-scan", figure: "security scan of a skill, CPU", program: "scan", record: "scan", limit: "baseline: read every file"},
		{key: "zip", figure: "check of a package, CPU", program: "zip", record: "check: OpenZIP and parse SKILL.md", limit: "baseline: archive/zip, names, inflate SKILL.md, sha256 of the package"},
	}},
	{"MCP calls", []row{
		{key: "load-skill", figure: "load_skill of 15 KB, again, stdio, 10,000 skills, wall", program: "mcp", record: "load_skill of 15 KB, again, stdio: wall", limit: "load_skill of 15 KB, again, stdio: baseline CPU"},
		{key: "search-skills", figure: "search_skills, 5 words, 10 hits, stdio, wall", program: "mcp", record: "search_skills, 5 words, 10 hits, stdio: wall", limit: "search_skills, 5 words, 10 hits, stdio: baseline CPU"},
		{key: "skills-list", figure: "skills/list, a page, again, stdio, wall", program: "mcp", record: "skills/list, a page, again, stdio: wall", limit: "skills/list, a page, again, stdio: baseline CPU"},
		{key: "call-stdio", figure: "proxied call, stdio to stdio, one caller, added p50", program: "upstream", record: "calls: `loadout mcp`, call_tool: one caller", of: added, limit: "calls: the server itself: one caller", goal: 0.18},
		{key: "call-stdio-cpu", figure: "the same, CPU of the gateway", program: "upstream", record: "calls: `loadout mcp`, call_tool: CPU of a call", limit: "calls: the server itself: CPU of a call"},
		{key: "call-stdio-16", figure: "the same, sixteen callers", program: "upstream", record: "calls: `loadout mcp`, call_tool: sixteen callers", limit: "calls: the server itself: sixteen callers"},
		{key: "call-direct", figure: "the same with `--expose direct`, one caller, added p50", program: "upstream", record: "calls: `loadout mcp --expose direct`: one caller", of: added, limit: "calls: the server itself: one caller"},
		{key: "call-http", figure: "proxied call, HTTP to HTTP, one caller, added p50", program: "upstream", record: "calls: `loadout mcp`, HTTP to HTTP: one caller", of: added, limit: "calls: the server itself over HTTP: one caller",
			peers: map[string]string{"docker": "calls: peer docker, HTTP to HTTP: one caller"}, below: "docker"},
		{key: "call-http-cpu", figure: "the same, CPU of the gateway", program: "upstream", record: "calls: `loadout mcp`, HTTP to HTTP: CPU of a call", limit: "calls: the server itself over HTTP: CPU of a call",
			peers: map[string]string{"docker": "calls: peer docker, HTTP to HTTP: CPU of a call"}},
		{key: "call-http-16", figure: "the same, sixteen callers", program: "upstream", record: "calls: `loadout mcp`, HTTP to HTTP: sixteen callers", limit: "calls: the server itself over HTTP: sixteen callers",
			peers: map[string]string{"docker": "calls: peer docker, HTTP to HTTP: sixteen callers"}},
		{key: "call-http-stdio", figure: "proxied call, HTTP to stdio, one caller, added p50", program: "upstream", record: "calls: `loadout mcp`, HTTP to stdio: one caller", of: added, limit: "calls: the server itself over HTTP: one caller",
			peers: map[string]string{"mcp-proxy": "calls: peer mcp-proxy, HTTP to stdio: one caller"}},
		{key: "call-http-stdio-16", figure: "the same, sixteen callers", program: "upstream", record: "calls: `loadout mcp`, HTTP to stdio: sixteen callers", limit: "calls: the server itself over HTTP: sixteen callers",
			peers: map[string]string{"mcp-proxy": "calls: peer mcp-proxy, HTTP to stdio: sixteen callers"}},
		{key: "first-result", figure: "from exec to the first tool result of a server, saved listing", program: "upstream", record: "first result: `loadout mcp`, saved listing", limit: "first result: baseline: the server itself"},
		{key: "fifty", figure: "50 servers configured, 3 used: memory with its servers (Pss)", program: "upstream", record: "50 servers, 3 used: Pss with its servers"},
	}},
	{"Skills of MCP servers", []row{
		{key: "served-list", figure: "list and check 20 servers with 500 skills, CPU, × limit", program: "served", record: "list and check all skills", of: ratio, limit: "baseline: decode the JSON of the lists", goal: 3},
		{key: "served-catalog", figure: "the same, into a catalog, CPU, × limit", program: "served", record: "the same, into a catalog, with the lists stored", of: ratio, limit: "baseline: decode the JSON of the lists"},
		{key: "served-restart", figure: "catalog of a new process, from the stored lists, CPU, × limit", program: "served", record: "catalog of a new process, from the stored lists", of: ratio, limit: "baseline: decode the JSON of the lists"},
		{key: "served-read", figure: "read of a cached file of 15 KB, disk, CPU, added to that of a local skill", program: "served", record: "the same from the cache on disk", of: added, limit: "baseline: read a file of 15 KB of a local skill", goal: 200},
	}},
	{"Hub", []row{
		{key: "hub-idle", figure: "idle hub, resident", program: "idle", record: "memory of the node: empty, idle, resident", goal: 50},
		{key: "hub-tools", figure: "first tools/list of a user, 1,000 skills, CPU", program: "hub", record: "SQLite: first tools/list of a user: CPU of the node"},
		{key: "hub-load", figure: "load_skill, 16 callers, CPU", program: "hub", record: "SQLite: load_skill, 16 callers: CPU of the node"},
		{key: "hub-load-rate", figure: "the same, calls", program: "hub", record: "SQLite: load_skill, 16 callers: calls"},
		{key: "turn-cpu", figure: "turn 50 of a conversation, CPU", program: "turns", record: "SQLite: turn 50: CPU time of the node"},
		{key: "turn-first", figure: "the same, first event, wall", program: "turns", record: "SQLite: turn 50: first event", limit: "SQLite: turn 50: baseline: an event is stored and sent"},
	}},
	{"Installing skills", []row{
		{key: "add-all", figure: "`loadout add --all`, 100 skills over HTTP, wall, × limit", program: "add", record: "http, wall: `loadout add --all`", of: ratio, limit: "http, wall: baseline: twice git clone plus the three above", goal: 1},
		{key: "add-frozen", figure: "`loadout add --frozen`, all, wall, × limit", program: "add", record: "http, wall: `loadout add --frozen`, all", of: ratio, limit: "http, wall: baseline: twice git clone plus the three above", goal: 1},
		{key: "update-check", figure: "`loadout update --check`, nothing new, wall, × limit", program: "add", record: "http, wall: `loadout update --check`, nothing new", of: ratio, limit: "http, wall: baseline: the two above together", goal: 2},
		{key: "verify", figure: "`loadout verify`, wall, × limit", program: "add", record: "http, wall: `loadout verify`", of: ratio, limit: "http, wall: baseline: read and hash every file"},
	}},
}

// allRows returns the rows of all subjects.
func allRows() []row {
	var all []row
	for _, s := range subjects {
		all = append(all, s.rows...)
	}
	return all
}

// peerNames returns the names of a row's peers in order.
func (r *row) peerNames() []string {
	var names []string
	for name := range r.peers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
