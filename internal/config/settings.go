package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Skills says which skills there are and which of them are available.
type Skills struct {
	Enabled bool
	Dirs    []string
	Project bool
	Home    bool
	Bundled bool
	Allow   []string
	Shell   string
	Keep    int
	Budget  int
	Depth   int
	Watch   bool
}

// MCP adjusts the MCP server.
type MCP struct {
	Address    string
	TokenFile  string
	TextBudget int
	Compat     string
}

// Servers says which MCP servers a person has.
type Servers struct {
	Files    []string
	Dirs     []string
	Safety   string
	Connect  string
	Deadline int
	Idle     int

	// Inherited are files and directories that variables of an earlier system name.
	Inherited []string
	// Project are files and directories that the file of a trusted project names.
	// What is in them is not the person's own: it runs in the sandbox, sees no
	// environment, and counts only where its bytes are those that are trusted.
	Project []string
}

// Sources say how skills are got from elsewhere. A project's file may set none of it.
type Sources struct {
	Private []string
	Tokens  []string // as host=SECRET
}

// Policy decides on calls of tools.
type Policy struct {
	Rules     []string
	Threshold string
}

// Sandbox says how scripts of skills run. A project's file may set none of it.
type Sandbox struct {
	Enabled      bool
	Backend      string
	MinTier      int
	Image        string
	MemoryMB     int
	Seconds      int
	DiskMB       int
	Network      []string
	Private      []string
	PythonIndex  string
	NPMRegistry  string
	BuildScripts bool
}

// Models say which language model a chat has. A project's file may set none of it.
type Models struct {
	Default   string
	BaseURL   string
	Key       string
	MaxTokens int
	Prices    map[string]Price // by vendor:name; * may end one
	Names     map[string]Named // short ones, which skills have for models
	Window    int
}

// Usage says whether what is used is counted.
type Usage struct {
	Enabled bool
}

// setting is one key: its place in the file, its environment variable, what
// it means, and the field it sets.
type setting struct {
	key, env, doc string
	also          string            // another variable, which counts before env does
	value         func(*Config) any // *bool, *int, *string, *[]string, *map[string]Price or *map[string]Named
	// project says that a project's own file may set it before the project
	// is trusted.
	project bool
	path    bool // its texts are paths
	hidden  bool // it may have a password, which is not shown
	check   func(any) error
}

// settings are all keys in the order of the example.
var settings = []setting{
	{key: "skills.enabled", env: "LOADOUT_SKILLS_ENABLED", value: func(c *Config) any { return &c.Skills.Enabled },
		doc: "The kill switch: false hides all skills from everybody."},
	{key: "skills.dirs", env: "LOADOUT_SKILLS_DIRS", value: func(c *Config) any { return &c.Skills.Dirs }, project: true, path: true,
		doc: "Further directories, .skill or .zip files with skills, preferred to the default places.\n" +
			"Relative paths are relative to this file; in the environment separate them as in PATH."},
	{key: "skills.project", env: "LOADOUT_SKILLS_PROJECT", value: func(c *Config) any { return &c.Skills.Project },
		doc: "Look in the project: skills, .loadout/skills, .agents/skills, .claude/skills, .codex/skills,\n" +
			".gemini/skills, .cursor/skills and .github/skills, from the working directory up to the\nroot of its repository."},
	{key: "skills.home", env: "LOADOUT_SKILLS_HOME", value: func(c *Config) any { return &c.Skills.Home },
		doc: "Look in the same dotted directories below the home directory, and in installed Claude plugins."},
	{key: "skills.bundled", env: "LOADOUT_SKILLS_BUNDLED", value: func(c *Config) any { return &c.Skills.Bundled },
		doc: "Offer the skills that come with Loadout."},
	{key: "skills.allow", env: "LOADOUT_SKILLS_ALLOW", value: func(c *Config) any { return &c.Skills.Allow },
		doc: "The only skills that are available: names, globs (docs-*), or either with a version\n(pdf@>=1.2). Empty means all."},
	{key: "skills.shell", env: "LOADOUT_SKILLS_SHELL", value: func(c *Config) any { return &c.Skills.Shell },
		doc: "The kind of agent that the skills are for, as ClaudeCode or Chat: skills that are bound to\nother kinds (bindShells) are hidden. Empty hides none."},
	{key: "skills.keep", env: "LOADOUT_SKILLS_KEEP", value: func(c *Config) any { return &c.Skills.Keep }, check: between(1, 10_000),
		doc: "For how many turns of a chat a skill stays loaded without being used."},
	{key: "skills.budget", env: "LOADOUT_SKILLS_BUDGET", value: func(c *Config) any { return &c.Skills.Budget }, check: between(0, 10_000_000),
		doc: "The most tokens of instructions that are loaded in a chat at once; what was used least recently\ngoes first. 0 is no bound."},
	{key: "skills.depth", env: "LOADOUT_SKILLS_DEPTH", value: func(c *Config) any { return &c.Skills.Depth }, check: between(1, 32),
		doc: "How many levels below a directory skills are searched."},
	{key: "skills.watch", env: "LOADOUT_SKILLS_WATCH", value: func(c *Config) any { return &c.Skills.Watch },
		doc: "Notice changes while running; without it, on SIGHUP only."},
	{key: "mcp.address", env: "LOADOUT_MCP_ADDRESS", value: func(c *Config) any { return &c.MCP.Address },
		doc: "Serve MCP over HTTP at this address, as 127.0.0.1:8485; empty means stdio."},
	{key: "mcp.token_file", env: "LOADOUT_MCP_TOKEN_FILE", value: func(c *Config) any { return &c.MCP.TokenFile }, path: true,
		doc: "File with the token that clients must send over HTTP; needed for other than loopback addresses.\nA relative path is relative to this file."},
	{key: "mcp.text_budget", env: "LOADOUT_MCP_TEXT_BUDGET", value: func(c *Config) any { return &c.MCP.TextBudget }, check: between(200, 1_000_000),
		doc: "How many characters of skill names and descriptions a client is told at the start."},
	{key: "mcp.compat", env: "LOADOUT_MCP_COMPAT", value: func(c *Config) any { return &c.MCP.Compat }, check: oneOf("", "weknora", "ba-agent", "wegent"),
		doc: "Serve the tools of an earlier system in place of ours: weknora, ba-agent or wegent."},
	{key: "servers.files", env: "LOADOUT_SERVERS_FILES", value: func(c *Config) any { return &c.Servers.Files }, path: true,
		doc: "Files with MCP servers, in the form of any client: mcpServers, servers, connections; JSON, YAML\nor TOML. The servers.yaml beside this file is always read."},
	{key: "servers.dirs", env: "LOADOUT_SERVERS_DIRS", value: func(c *Config) any { return &c.Servers.Dirs }, path: true,
		doc: "Directories with such files."},
	{key: "servers.connect", env: "LOADOUT_SERVERS_CONNECT", value: func(c *Config) any { return &c.Servers.Connect }, check: oneOf("", "on-load", "at-start"),
		doc: "When servers are connected: on-load, when a skill or a call needs them, or at-start."},
	{key: "servers.deadline", env: "LOADOUT_SERVERS_DEADLINE", value: func(c *Config) any { return &c.Servers.Deadline }, check: between(1, 600),
		doc: "How many seconds loading a skill waits for its servers."},
	{key: "servers.idle", env: "LOADOUT_SERVERS_IDLE", value: func(c *Config) any { return &c.Servers.Idle }, check: between(1, 86_400),
		doc: "After how many seconds without a call a server is stopped."},
	{key: "servers.safety", env: "LOADOUT_SERVERS_SAFETY", value: func(c *Config) any { return &c.Servers.Safety }, check: oneOf("", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"),
		doc: "How much harm the tools of a server can do that does not say: SAFE, LOW, MEDIUM, HIGH or CRITICAL."},
	{key: "sources.private", env: "LOADOUT_SOURCES_PRIVATE", value: func(c *Config) any { return &c.Sources.Private },
		doc: "Hosts with private addresses that skills may be got from, as git.example.com. What is named by\nits address, or as localhost, needs no leave."},
	{key: "sources.tokens", env: "LOADOUT_SOURCES_TOKENS", value: func(c *Config) any { return &c.Sources.Tokens }, check: hostSecrets,
		doc: "Secrets that hosts are shown where they ask who is there, as git.example.com=GIT_TOKEN, set by\n" +
			"loadout secret set GIT_TOKEN. Else GH_TOKEN (for github.com), GITLAB_TOKEN (for gitlab.com) and\ngit's own helpers are asked."},
	{key: "policy.rules", env: "LOADOUT_POLICY_RULES", value: func(c *Config) any { return &c.Policy.Rules },
		doc: "Which tools may be called: allow, ask or deny and a tool, as \"deny mcp.github.delete_*\" or\n\"allow github__get_issue\"; the first that fits counts, but deny beats all."},
	{key: "policy.threshold", env: "LOADOUT_POLICY_THRESHOLD", value: func(c *Config) any { return &c.Policy.Threshold }, check: oneOf("", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"),
		doc: "The level of safety from which a person is asked where no rule says otherwise."},
	{key: "sandbox.enabled", env: "LOADOUT_SANDBOX_ENABLED", value: func(c *Config) any { return &c.Sandbox.Enabled },
		doc: "Run scripts of skills; false refuses all of them and hides the tool from clients."},
	{key: "sandbox.backend", env: "LOADOUT_SANDBOX_BACKEND", value: func(c *Config) any { return &c.Sandbox.Backend },
		check: oneOf("", "auto", "native", "bwrap", "container", "landlock", "process", "seatbelt"),
		doc: "What isolates scripts: auto takes the first of native, bwrap and container that works here;\n" +
			"landlock, seatbelt and process isolate less and are used only where they are named."},
	{key: "sandbox.min_tier", env: "LOADOUT_SANDBOX_MIN_TIER", value: func(c *Config) any { return &c.Sandbox.MinTier }, check: between(1, 4),
		doc: "The least isolation that is accepted: 1 limits, 2 access rules, 3 a view of its own, 4 a kernel\nof its own. A back end that is named needs no more than it has."},
	{key: "sandbox.image", env: "LOADOUT_SANDBOX_IMAGE", value: func(c *Config) any { return &c.Sandbox.Image },
		doc: "The image in which the back end container runs scripts; it must be there already."},
	{key: "sandbox.memory_mb", env: "LOADOUT_SANDBOX_MEMORY_MB", value: func(c *Config) any { return &c.Sandbox.MemoryMB }, check: between(16, 1<<20),
		doc: "The most memory of one run, in MiB. A skill can ask for less."},
	{key: "sandbox.seconds", env: "LOADOUT_SANDBOX_SECONDS", value: func(c *Config) any { return &c.Sandbox.Seconds }, check: between(1, 86_400),
		doc: "The longest that one run takes."},
	{key: "sandbox.disk_mb", env: "LOADOUT_SANDBOX_DISK_MB", value: func(c *Config) any { return &c.Sandbox.DiskMB }, check: between(1, 1<<20),
		doc: "The most that one run writes, in MiB."},
	{key: "sandbox.network", env: "LOADOUT_SANDBOX_NETWORK", value: func(c *Config) any { return &c.Sandbox.Network },
		doc: "The hosts that skills may ask for, as api.example.com, *.example.com:8443 or * for all; a person\nstill approves what a skill asks for. Empty gives no skill a network."},
	{key: "sandbox.private", env: "LOADOUT_SANDBOX_PRIVATE", value: func(c *Config) any { return &c.Sandbox.Private },
		doc: "Private addresses that may be reached, as 10.1.2.0/24: without them an allowed name that\nleads to one is refused."},
	{key: "sandbox.python_index", env: "LOADOUT_SANDBOX_PYTHON_INDEX", value: func(c *Config) any { return &c.Sandbox.PythonIndex }, check: webAddress,
		doc: "The index from which Python packages of scripts are installed; empty means that of PyPI."},
	{key: "sandbox.npm_registry", env: "LOADOUT_SANDBOX_NPM_REGISTRY", value: func(c *Config) any { return &c.Sandbox.NPMRegistry }, check: webAddress,
		doc: "The registry from which npm packages of scripts are installed; empty means that of npm."},
	{key: "sandbox.build_scripts", env: "LOADOUT_SANDBOX_BUILD_SCRIPTS", value: func(c *Config) any { return &c.Sandbox.BuildScripts },
		doc: "Let packages be built from source and run their install scripts, in the sandbox too."},
	{key: "models.default", env: "LOADOUT_MODELS_DEFAULT", value: func(c *Config) any { return &c.Models.Default },
		doc: "The language model of loadout chat, as anthropic:NAME or openai:NAME; empty means a demonstration\nthat is none."},
	{key: "models.base_url", env: "LOADOUT_MODELS_BASE_URL", value: func(c *Config) any { return &c.Models.BaseURL }, check: webAddress,
		doc: "The server of the model, as http://127.0.0.1:11434/v1; empty means that of the vendor."},
	{key: "models.key", env: "LOADOUT_MODELS_KEY", value: func(c *Config) any { return &c.Models.Key },
		doc: "The name of the secret or variable with the key for it; empty means ANTHROPIC_API_KEY or\nOPENAI_API_KEY, which are sent to their vendors only."},
	{key: "models.max_tokens", env: "LOADOUT_MODELS_MAX_TOKENS", value: func(c *Config) any { return &c.Models.MaxTokens }, check: between(0, 1_000_000),
		doc: "The most tokens of one answer; 0 is what the model's vendor says."},
	{key: "models.window", env: "LOADOUT_MODELS_WINDOW", value: func(c *Config) any { return &c.Models.Window }, check: between(0, 100_000_000),
		doc: "How many tokens the model takes at once: before a conversation has as many, it is put in short.\n0 never does that."},
	{key: "models.names", env: "LOADOUT_MODELS_NAMES", value: func(c *Config) any { return &c.Models.Names },
		doc: "Short names of models, as haiku: anthropic:NAME, or here: {model: openai:NAME, base_url: URL, key:\n" +
			"SECRET}: for --model, and for skills that were approved and name one, which have it while they are\nloaded. Other names in skills are ignored, with a notice."},
	{key: "models.prices", env: "LOADOUT_MODELS_PRICES", value: func(c *Config) any { return &c.Models.Prices },
		doc: "What models cost, in US dollars a million tokens, as {\"anthropic:NAME\": {input: 3, output: 15,\n" +
			"cache_read: 0.3, cache_write: 3.75}}. What is not said of the cache costs as input does. A * may\n" +
			"end a name; the longest that fits counts. No prices are built in."},
	{key: "usage.enabled", env: "LOADOUT_USAGE_ENABLED", also: "LOADOUT_USAGE", value: func(c *Config) any { return &c.Usage.Enabled },
		doc: "Count what skills, tools and models are used for, in a file of yours that is sent nowhere; see\n" +
			"loadout usage. LOADOUT_USAGE=off is false too."},
	{key: "hub.address", env: "LOADOUT_HUB_ADDRESS", value: func(c *Config) any { return &c.Hub.Address },
		doc: "Where loadout serve listens. Other than loopback addresses need accounts."},
	{key: "hub.data", env: "LOADOUT_HUB_DATA", value: func(c *Config) any { return &c.Hub.Data }, path: true,
		doc: "The directory of a hub, or of one node of it: the database and the key, where these are nowhere\nelse, and copies of files. Empty means hub in the state directory."},
	{key: "hub.database", env: "LOADOUT_HUB_DATABASE", also: "LOADOUT_DATABASE", value: func(c *Config) any { return &c.Hub.Database }, hidden: true,
		doc: "The database, as postgres://user:password@host/name or sqlite:PATH; empty means SQLite in hub.data.\nLOADOUT_DATABASE is the same."},
	{key: "hub.redis", env: "LOADOUT_HUB_REDIS", also: "LOADOUT_REDIS", value: func(c *Config) any { return &c.Hub.Redis }, hidden: true,
		doc: "The Redis by which several nodes wake each other, as redis://host:6379/0; empty means one node.\nLOADOUT_REDIS is the same."},
	{key: "hub.key_file", env: "LOADOUT_HUB_KEY_FILE", value: func(c *Config) any { return &c.Hub.KeyFile }, path: true,
		doc: "A file with the keys that secrets of a hub are sealed with, the first for new ones, made with\n" +
			"openssl rand -base64 32; LOADOUT_HUB_KEY has the keys themselves. Empty means a file in hub.data\nwith SQLite; PostgreSQL needs one of the two."},
	{key: "hub.accounts", env: "LOADOUT_HUB_ACCOUNTS", value: func(c *Config) any { return &c.Hub.Accounts },
		doc: "Let people sign in. A hub that has an administrator always does."},
	{key: "hub.admin", env: "LOADOUT_HUB_ADMIN", value: func(c *Config) any { return &c.Hub.Admin },
		doc: "The name of the first administrator, where hub.admin_password_file has a password for one."},
	{key: "hub.admin_password_file", env: "LOADOUT_HUB_ADMIN_PASSWORD_FILE", value: func(c *Config) any { return &c.Hub.AdminPasswordFile }, path: true,
		doc: "A file with the password of the first administrator, who is made where there is none. Without it\na link for that is printed."},
	{key: "hub.public", env: "LOADOUT_HUB_PUBLIC", value: func(c *Config) any { return &c.Hub.Public }, check: webAddress,
		doc: "The address by which people reach the hub, as https://hub.example.com."},
	{key: "hub.proxies", env: "LOADOUT_HUB_PROXIES", value: func(c *Config) any { return &c.Hub.Proxies }, check: networks,
		doc: "The addresses or networks of reverse proxies, whose word is taken for who is behind them."},
	{key: "hub.oidc_issuer", env: "LOADOUT_HUB_OIDC_ISSUER", value: func(c *Config) any { return &c.Hub.OIDCIssuer }, check: webAddress,
		doc: "The OpenID Connect provider that signs people in, as https://id.example.com; it needs hub.public."},
	{key: "hub.oidc_client", env: "LOADOUT_HUB_OIDC_CLIENT", value: func(c *Config) any { return &c.Hub.OIDCClient },
		doc: "The hub's client id there."},
	{key: "hub.oidc_secret", env: "LOADOUT_HUB_OIDC_SECRET", value: func(c *Config) any { return &c.Hub.OIDCSecret },
		doc: "The name of the variable or secret with the client's secret; empty means LOADOUT_OIDC_SECRET."},
	{key: "hub.oidc_scopes", env: "LOADOUT_HUB_OIDC_SCOPES", value: func(c *Config) any { return &c.Hub.OIDCScopes },
		doc: "What is asked of the provider besides openid; empty means profile and email."},
	{key: "hub.oidc_name", env: "LOADOUT_HUB_OIDC_NAME", value: func(c *Config) any { return &c.Hub.OIDCName },
		doc: "The claim with the name of a person; empty means preferred_username."},
	{key: "hub.oidc_groups", env: "LOADOUT_HUB_OIDC_GROUPS", value: func(c *Config) any { return &c.Hub.OIDCGroups },
		doc: "The claim with the groups of a person; empty means groups."},
	{key: "hub.oidc_everyone", env: "LOADOUT_HUB_OIDC_EVERYONE", value: func(c *Config) any { return &c.Hub.OIDCEveryone },
		doc: "Give an account to all whom the provider knows, and not only to members of groups that are let in."},
	{key: "hub.private", env: "LOADOUT_HUB_PRIVATE", value: func(c *Config) any { return &c.Hub.Private }, check: networks,
		doc: "Private addresses that models, MCP servers and sources of people may have, as 10.1.2.0/24."},
	{key: "hub.runs", env: "LOADOUT_HUB_RUNS", value: func(c *Config) any { return &c.Hub.Runs }, check: between(1, 1000),
		doc: "How many pieces of code of skills run at once on a node; more wait, and users take turns."},
	{key: "hub.rate", env: "LOADOUT_HUB_RATE", value: func(c *Config) any { return &c.Hub.Rate }, check: between(1, 100_000),
		doc: "How many requests a second a user may make for long."},
	{key: "hub.drain", env: "LOADOUT_HUB_DRAIN", value: func(c *Config) any { return &c.Hub.Drain }, check: between(1, 3600),
		doc: "How many seconds what is under way may take to end when the hub is stopped."},
	{key: "hub.log", env: "LOADOUT_HUB_LOG", value: func(c *Config) any { return &c.Hub.Log }, check: oneOf("", "text", "json"),
		doc: "How the hub logs, on standard error: text or json; empty means text on a terminal and json elsewhere."},
}

func between(low, high int) func(any) error {
	return func(v any) error {
		if n := *v.(*int); n < low || n > high {
			return fmt.Errorf("%d is not between %d and %d", n, low, high)
		}
		return nil
	}
}

func oneOf(names ...string) func(any) error {
	return func(v any) error {
		for _, n := range names {
			if *v.(*string) == n {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", *v.(*string), strings.Join(names[1:], ", "))
	}
}

// hostSecrets checks hosts, each with the name of a secret.
func hostSecrets(v any) error {
	for _, entry := range *v.(*[]string) {
		host, name, ok := strings.Cut(entry, "=")
		if !ok || host == "" || strings.ContainsAny(host, "/@ ") || name == "" || strings.ContainsFunc(name, notOfName) {
			return errors.New("an entry is not as git.example.com=GIT_TOKEN, a host and the name of a secret")
		}
	}
	return nil
}

// notOfName reports whether a character cannot be in the name of a secret.
func notOfName(r rune) bool {
	return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// webAddress checks an address of a registry. What is wrong may hold a password,
// and is not repeated.
func webAddress(v any) error {
	s := *v.(*string)
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return errors.New("it is not an address as https://registry.example.com/path")
	}
	return nil
}

// defaults is the configuration where nothing is set.
func defaults() *Config {
	return &Config{
		Skills:  Skills{Enabled: true, Project: true, Home: true, Bundled: true, Keep: 5, Depth: 6, Watch: true},
		MCP:     MCP{TextBudget: 2000},
		Servers: Servers{Connect: "on-load", Deadline: 20, Idle: 600, Safety: "MEDIUM"},
		Policy:  Policy{Threshold: "HIGH"},
		Sandbox: Sandbox{Enabled: true, Backend: "auto", MinTier: 3, MemoryMB: 512, Seconds: 60, DiskMB: 64, Network: []string{"*"}},
		Usage:   Usage{Enabled: true},
		Hub:     Hub{Address: "127.0.0.1:8484", Admin: "admin", Runs: 4, Rate: 100, Drain: 10},
		from:    map[string]string{},
	}
}

// parse sets a value from text, as in the environment.
func (s setting) parse(c *Config, text string) error {
	switch v := s.value(c).(type) {
	case *bool:
		b, err := parseBool(text)
		if err != nil {
			return err
		}
		*v = b
	case *int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*v = n
	case *string:
		*v = text
	case *map[string]Price:
		if err := parsePrices(v, text); err != nil {
			return err
		}
	case *map[string]Named:
		if err := parseNames(v, text); err != nil {
			return err
		}
	case *[]string:
		if *v = splitList(s.path, text); len(*v) == 0 {
			return fmt.Errorf("%q names nothing; unset it, or give it a value", text)
		}
	}
	return s.valid(c)
}

func (s setting) valid(c *Config) error {
	if s.check == nil {
		return nil
	}
	return s.check(s.value(c))
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off", "":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// splitList splits paths as in PATH, other lists at commas.
func splitList(paths bool, text string) []string {
	parts := strings.Split(text, ",")
	if paths {
		parts = filepath.SplitList(text)
	}
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
