package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/requirement"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// Skills configures which skills are available and where to find them.
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
	Update  string // "notify", "reload" or "pin"
}

// MCP configures the MCP server.
type MCP struct {
	Address    string
	TokenFile  string
	TextBudget int
	Compat     string
}

// Servers configures the user's MCP servers.
type Servers struct {
	Files    []string
	Dirs     []string
	Safety   string
	Connect  string
	Deadline int
	Idle     int

	// Inherited lists files and directories from legacy environment variables.
	Inherited []string
	// Project lists files and directories from a trusted project's
	// configuration. Their servers do not count as the user's own. They run in
	// the sandbox without the user's environment, and only while the files have
	// the trusted content.
	Project []string
}

// Sources configures remote sources of skills. A project file cannot set any of
// these keys.
type Sources struct {
	Private []string
	Tokens  []string // entries of the form host=SECRET
}

// Policy configures approvals. A project file cannot set Presence or Approved.
type Policy struct {
	Presence  string // "cooperative" or [Managed]
	Rules     []string
	Threshold string
	Approved  []string // entries of the form skill=sha256:DIGEST
}

// Sandbox configures how skill scripts run. A project file cannot set any of
// these keys.
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
	Packages     []string // Python requirements for the commands of agents
	PythonIndex  string
	NPMRegistry  string
	BuildScripts bool
	// DirectWorkspace lets scripts write to a workspace without an overlay.
	DirectWorkspace bool
}

// Models configures the language models of a chat. A project file cannot set
// any of these keys.
type Models struct {
	Default   string
	BaseURL   string
	Key       string
	MaxTokens int
	Prices    map[string]Price      // by vendor:name; a final * matches any suffix
	Names     map[string]NamedModel // short names, which skills can use
	Window    int
	Images    string // whether the model of the configuration reads images: always, never or "" or auto for by its name
}

// Releases configures where to look for new versions of Loadout. A project file
// cannot set any of these keys.
type Releases struct {
	Index string
}

// Usage configures the usage log.
type Usage struct {
	Enabled bool
}

// setting describes a configuration key: its environment variable,
// documentation and field.
type setting struct {
	key, env, doc string
	also          string            // alternative variable, which takes precedence over env
	value         func(*Config) any // returns a pointer to the field: *bool, *int, *string, *[]string, *map[string]Price or *map[string]NamedModel
	// project is true if an untrusted project file may set the key.
	project bool
	path    bool // whether the values are paths
	hidden  bool // whether the value may contain a password and must not be shown
	check   func(any) error
}

// settings lists all keys in the order of the example configuration.
var settings = []setting{
	{key: "skills.enabled", env: "LOADOUT_SKILLS_ENABLED", value: func(c *Config) any { return &c.Skills.Enabled },
		doc: "Kill switch: false hides all skills."},
	{key: "skills.dirs", env: "LOADOUT_SKILLS_DIRS", value: func(c *Config) any { return &c.Skills.Dirs }, project: true, path: true,
		doc: "More directories, .skill or .zip files with skills. They take precedence over the default locations.\n" +
			"Relative paths are relative to this file; in the environment, separate them as in PATH."},
	{key: "skills.project", env: "LOADOUT_SKILLS_PROJECT", value: func(c *Config) any { return &c.Skills.Project },
		doc: "Search the project: skills, .loadout/skills, .agents/skills, .claude/skills, .codex/skills,\n" +
			".gemini/skills, .cursor/skills and .github/skills, from the working directory up to the\nrepository root."},
	{key: "skills.home", env: "LOADOUT_SKILLS_HOME", value: func(c *Config) any { return &c.Skills.Home },
		doc: "Search the same dotted directories in the home directory, and installed Claude plugins."},
	{key: "skills.bundled", env: "LOADOUT_SKILLS_BUNDLED", value: func(c *Config) any { return &c.Skills.Bundled },
		doc: "Offer the bundled skills."},
	{key: "skills.allow", env: "LOADOUT_SKILLS_ALLOW", value: func(c *Config) any { return &c.Skills.Allow },
		doc: "Allowlist of skills: names or globs (docs-*), optionally with a version (pdf@>=1.2).\nEmpty means all."},
	{key: "skills.shell", env: "LOADOUT_SKILLS_SHELL", value: func(c *Config) any { return &c.Skills.Shell },
		doc: "The agent type, such as ClaudeCode or Chat. Skills bound to other types (bindShells)\nare hidden. Empty hides none."},
	{key: "skills.keep", env: "LOADOUT_SKILLS_KEEP", value: func(c *Config) any { return &c.Skills.Keep }, check: inRange(1, 10_000),
		doc: "Number of chat turns after which an unused skill is unloaded."},
	{key: "skills.budget", env: "LOADOUT_SKILLS_BUDGET", value: func(c *Config) any { return &c.Skills.Budget }, check: inRange(0, 10_000_000),
		doc: "Limit of instruction tokens loaded in a chat. The least recently used skills are unloaded\nfirst. 0 means no limit."},
	{key: "skills.depth", env: "LOADOUT_SKILLS_DEPTH", value: func(c *Config) any { return &c.Skills.Depth }, check: inRange(1, 32),
		doc: "Depth of the search for skills below a directory."},
	{key: "skills.watch", env: "LOADOUT_SKILLS_WATCH", value: func(c *Config) any { return &c.Skills.Watch },
		doc: "Watch for changes while running; otherwise reload on SIGHUP only."},
	{key: "skills.update", env: "LOADOUT_SKILLS_UPDATE", value: func(c *Config) any { return &c.Skills.Update }, check: oneOf("", "notify", "reload", "pin"),
		doc: "What happens in a conversation of chat or the hub when a loaded skill changes: notify (tell the\n" +
			"model to load it again), reload (load it, if it has no code or is approved) or pin (nothing)."},
	{key: "mcp.address", env: "LOADOUT_MCP_ADDRESS", value: func(c *Config) any { return &c.MCP.Address },
		doc: "Serve MCP over HTTP at this address, for example 127.0.0.1:8485; empty means stdio."},
	{key: "mcp.token_file", env: "LOADOUT_MCP_TOKEN_FILE", value: func(c *Config) any { return &c.MCP.TokenFile }, path: true,
		doc: "File with the token that HTTP clients must send; required unless the address is loopback.\nA relative path is relative to this file."},
	{key: "mcp.text_budget", env: "LOADOUT_MCP_TEXT_BUDGET", value: func(c *Config) any { return &c.MCP.TextBudget }, check: zeroOr(inRange(200, 1_000_000)),
		doc: "Limit of the skill names and descriptions sent to a client at the start, in characters;\n0: as many as the client is known to show to its model."},
	{key: "mcp.compat", env: "LOADOUT_MCP_COMPAT", value: func(c *Config) any { return &c.MCP.Compat }, check: oneOf(append([]string{""}, toolname.CompatSystems()...)...),
		doc: "Serve the tools of an earlier system instead of Loadout's: weknora, ba-agent or wegent."},
	{key: "servers.files", env: "LOADOUT_SERVERS_FILES", value: func(c *Config) any { return &c.Servers.Files }, path: true,
		doc: "Files with MCP servers, in the format of any client: mcpServers, servers, connections; JSON, YAML\nor TOML. The servers.yaml beside this file is always read."},
	{key: "servers.dirs", env: "LOADOUT_SERVERS_DIRS", value: func(c *Config) any { return &c.Servers.Dirs }, path: true,
		doc: "Directories that contain such files."},
	{key: "servers.connect", env: "LOADOUT_SERVERS_CONNECT", value: func(c *Config) any { return &c.Servers.Connect }, check: oneOf("", "on-load", "at-start"),
		doc: "When to connect servers: on-load (when a skill or a call needs them) or at-start."},
	{key: "servers.deadline", env: "LOADOUT_SERVERS_DEADLINE", value: func(c *Config) any { return &c.Servers.Deadline }, check: inRange(1, 600),
		doc: "Seconds that loading a skill waits for its servers."},
	{key: "servers.idle", env: "LOADOUT_SERVERS_IDLE", value: func(c *Config) any { return &c.Servers.Idle }, check: inRange(1, 86_400),
		doc: "Seconds without a call after which a server is stopped."},
	{key: "servers.safety", env: "LOADOUT_SERVERS_SAFETY", value: func(c *Config) any { return &c.Servers.Safety }, check: oneOf("", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"),
		doc: "Risk level of tools without annotations: SAFE, LOW, MEDIUM, HIGH or CRITICAL."},
	{key: "sources.private", env: "LOADOUT_SOURCES_PRIVATE", value: func(c *Config) any { return &c.Sources.Private },
		doc: "Hosts with private addresses that skills may be installed from, for example git.example.com.\nIP addresses and localhost need no entry."},
	{key: "sources.tokens", env: "LOADOUT_SOURCES_TOKENS", value: func(c *Config) any { return &c.Sources.Tokens }, check: checkHostSecrets,
		doc: "Credentials for hosts, for example git.example.com=GIT_TOKEN; the secret is set with\n" +
			"loadout secret set GIT_TOKEN. The fallbacks are GH_TOKEN (for github.com), GITLAB_TOKEN (for\ngitlab.com) and git's credential helpers."},
	{key: "policy.rules", env: "LOADOUT_POLICY_RULES", value: func(c *Config) any { return &c.Policy.Rules },
		doc: "Rules for tool calls: allow, ask or deny and a tool, for example \"deny mcp.github.delete_*\" or\n\"allow github__get_issue\". The first match counts, except that deny always wins."},
	{key: "policy.threshold", env: "LOADOUT_POLICY_THRESHOLD", value: func(c *Config) any { return &c.Policy.Threshold }, check: oneOf("", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"),
		doc: "Risk level from which tool calls without a matching rule need approval."},
	{key: "policy.approved", value: func(c *Config) any { return &c.Policy.Approved }, check: checkApproved,
		doc: "Approved versions of skills, for unattended machines, for example\n" +
			"pdf=sha256:5f70bf18… with all 64 digits. List the dependencies too. No environment variable."},
	{key: "policy.presence", value: func(c *Config) any { return &c.Policy.Presence }, check: oneOf("", "cooperative", Managed),
		doc: "Whose approvals count: cooperative (yours) or managed (only the administrator's). Only the\n" +
			"administrator of the machine can set managed, in /etc/loadout/loadout.yaml. No environment variable."},
	{key: "sandbox.enabled", env: "LOADOUT_SANDBOX_ENABLED", value: func(c *Config) any { return &c.Sandbox.Enabled },
		doc: "Allow scripts of skills; false refuses all of them and hides the tool from clients."},
	{key: "sandbox.backend", env: "LOADOUT_SANDBOX_BACKEND", value: func(c *Config) any { return &c.Sandbox.Backend },
		check: oneOf("", "auto", "native", "bwrap", "container", "landlock", "process", "seatbelt"),
		doc: "The sandbox backend: auto selects the first of native, bwrap and container that works here;\n" +
			"landlock, seatbelt and process isolate less and are used only if named."},
	{key: "sandbox.min_tier", env: "LOADOUT_SANDBOX_MIN_TIER", value: func(c *Config) any { return &c.Sandbox.MinTier }, check: inRange(1, 4),
		doc: "Minimum isolation: 1 limits, 2 access rules, 3 private file system view, 4 separate kernel.\nIgnored for a backend selected by name."},
	{key: "sandbox.image", env: "LOADOUT_SANDBOX_IMAGE", value: func(c *Config) any { return &c.Sandbox.Image },
		doc: "The image for the container backend; it must be present already."},
	{key: "sandbox.memory_mb", env: "LOADOUT_SANDBOX_MEMORY_MB", value: func(c *Config) any { return &c.Sandbox.MemoryMB }, check: inRange(16, 1<<20),
		doc: "Memory limit of a run, in MiB. A skill can request less."},
	{key: "sandbox.seconds", env: "LOADOUT_SANDBOX_SECONDS", value: func(c *Config) any { return &c.Sandbox.Seconds }, check: inRange(1, 86_400),
		doc: "Time limit of a run, in seconds."},
	{key: "sandbox.disk_mb", env: "LOADOUT_SANDBOX_DISK_MB", value: func(c *Config) any { return &c.Sandbox.DiskMB }, check: inRange(1, 1<<20),
		doc: "Limit of the data that a run writes, in MiB."},
	{key: "sandbox.network", env: "LOADOUT_SANDBOX_NETWORK", value: func(c *Config) any { return &c.Sandbox.Network },
		doc: "Hosts that skills may request, for example api.example.com, *.example.com:8443 or * for all.\nEach request still needs approval. Empty means no network for any skill."},
	{key: "sandbox.private", env: "LOADOUT_SANDBOX_PRIVATE", value: func(c *Config) any { return &c.Sandbox.Private }, check: checkNetworks,
		doc: "Private networks that may be reached, for example 10.1.2.0/24. Without an entry, an allowed\nname that resolves to a private address is refused."},
	{key: "sandbox.packages", env: "LOADOUT_SANDBOX_PACKAGES", value: func(c *Config) any { return &c.Sandbox.Packages }, check: checkRequirements,
		doc: "Python packages that the commands of an agent in chat or on the hub can import, for example\n" +
			"pandas>=2 or matplotlib. They are installed once, in a sandbox, from sandbox.python_index."},
	{key: "sandbox.python_index", env: "LOADOUT_SANDBOX_PYTHON_INDEX", value: func(c *Config) any { return &c.Sandbox.PythonIndex }, check: checkWebAddress,
		doc: "The Python package index for scripts; empty means PyPI."},
	{key: "sandbox.npm_registry", env: "LOADOUT_SANDBOX_NPM_REGISTRY", value: func(c *Config) any { return &c.Sandbox.NPMRegistry }, check: checkWebAddress,
		doc: "The npm registry for scripts; empty means the public one."},
	{key: "sandbox.build_scripts", env: "LOADOUT_SANDBOX_BUILD_SCRIPTS", value: func(c *Config) any { return &c.Sandbox.BuildScripts },
		doc: "Allow packages to build from source and to run install scripts, in the sandbox."},
	{key: "sandbox.direct_workspace", env: "LOADOUT_SANDBOX_DIRECT_WORKSPACE", value: func(c *Config) any { return &c.Sandbox.DirectWorkspace },
		doc: "If the sandbox has no overlays, let scripts with write access change the workspace directly. Then nobody\n" +
			"reviews changes to files such as CLAUDE.md. If false, the workspace is read-only without overlays."},
	{key: "models.default", env: "LOADOUT_MODELS_DEFAULT", value: func(c *Config) any { return &c.Models.Default },
		doc: "The language model of loadout chat, as anthropic:NAME or openai:NAME; empty means the built-in\ndemo."},
	{key: "models.base_url", env: "LOADOUT_MODELS_BASE_URL", value: func(c *Config) any { return &c.Models.BaseURL }, check: checkWebAddress,
		doc: "The base URL of the model server, for example http://127.0.0.1:11434/v1; empty means the vendor's."},
	{key: "models.key", env: "LOADOUT_MODELS_KEY", value: func(c *Config) any { return &c.Models.Key },
		doc: "The secret or variable with the API key; empty means ANTHROPIC_API_KEY or OPENAI_API_KEY,\nwhich are sent to their vendors only."},
	{key: "models.max_tokens", env: "LOADOUT_MODELS_MAX_TOKENS", value: func(c *Config) any { return &c.Models.MaxTokens }, check: inRange(0, 1_000_000),
		doc: "Token limit of an answer; 0 means the vendor's default."},
	{key: "models.window", env: "LOADOUT_MODELS_WINDOW", value: func(c *Config) any { return &c.Models.Window }, check: inRange(0, 100_000_000),
		doc: "Context window of the model, in tokens. Longer conversations are compacted. 0 disables\ncompaction."},
	{key: "models.images", env: "LOADOUT_MODELS_IMAGES", value: func(c *Config) any { return &c.Models.Images }, check: oneOf("", "auto", "always", "never"),
		doc: "Whether the model of a hub reads images that users attach: always, never, or auto (by its\nname)."},
	{key: "models.names", env: "LOADOUT_MODELS_NAMES", value: func(c *Config) any { return &c.Models.Names },
		doc: "Short names of models, for example haiku: anthropic:NAME, or local: {model: openai:NAME, base_url:\n" +
			"URL, key: SECRET}. They work with --model and in approved skills, for as long as the skill is\nloaded. Other model names in skills are ignored with a notice."},
	{key: "models.prices", env: "LOADOUT_MODELS_PRICES", value: func(c *Config) any { return &c.Models.Prices },
		doc: "Model prices in US dollars per million tokens, as {\"anthropic:NAME\": {input: 3, output: 15,\n" +
			"cache_read: 0.3, cache_write: 3.75}}. A missing cache price equals the input price. A final *\n" +
			"matches a prefix; the longest match counts. No prices are built in."},
	{key: "usage.enabled", env: "LOADOUT_USAGE_ENABLED", also: "LOADOUT_USAGE", value: func(c *Config) any { return &c.Usage.Enabled },
		doc: "Count the use of skills, tools and models in a local file that is never sent anywhere; see\n" +
			"loadout usage. LOADOUT_USAGE=off means false too."},
	{key: "releases.index", env: "LOADOUT_RELEASES_INDEX", value: func(c *Config) any { return &c.Releases.Index }, check: checkWebAddress,
		doc: "URL of the index that loadout upgrade --check reads, for example https://example.com/loadout/index.json.\n" +
			"Nothing else reads it. Empty means none."},
	{key: "hub.address", env: "LOADOUT_HUB_ADDRESS", value: func(c *Config) any { return &c.Hub.Address },
		doc: "Listen address of loadout serve. Addresses other than loopback require accounts."},
	{key: "hub.data", env: "LOADOUT_HUB_DATA", value: func(c *Config) any { return &c.Hub.Data }, path: true,
		doc: "Data directory of the hub or of one node: the database and the key, unless configured elsewhere,\nand file copies. Empty means hub in the state directory."},
	{key: "hub.database", env: "LOADOUT_HUB_DATABASE", also: "LOADOUT_DATABASE", value: func(c *Config) any { return &c.Hub.Database }, hidden: true,
		doc: "The database, as postgres://user:password@host/name or sqlite:PATH; empty means SQLite in hub.data.\nLOADOUT_DATABASE has the same effect."},
	{key: "hub.redis", env: "LOADOUT_HUB_REDIS", also: "LOADOUT_REDIS", value: func(c *Config) any { return &c.Hub.Redis }, hidden: true,
		doc: "The Redis server that connects several nodes, such as redis://host:6379/0; empty means one node.\nLOADOUT_REDIS has the same effect."},
	{key: "hub.key_file", env: "LOADOUT_HUB_KEY_FILE", value: func(c *Config) any { return &c.Hub.KeyFile }, path: true,
		doc: "File with the encryption keys for hub secrets; the first key encrypts new secrets. Create a key with\n" +
			"openssl rand -base64 32. LOADOUT_HUB_KEY holds the keys themselves. Empty means a file in\nhub.data with SQLite; PostgreSQL requires one of the two."},
	{key: "hub.accounts", env: "LOADOUT_HUB_ACCOUNTS", value: func(c *Config) any { return &c.Hub.Accounts },
		doc: "Require users to sign in. Always on once the hub has an administrator."},
	{key: "hub.admin", env: "LOADOUT_HUB_ADMIN", value: func(c *Config) any { return &c.Hub.Admin },
		doc: "Name of the first administrator, created with the password in hub.admin_password_file."},
	{key: "hub.admin_password_file", env: "LOADOUT_HUB_ADMIN_PASSWORD_FILE", value: func(c *Config) any { return &c.Hub.AdminPasswordFile }, path: true,
		doc: "File with the password of the first administrator, created if there is none. Without it, a\nsetup link is printed."},
	{key: "hub.public", env: "LOADOUT_HUB_PUBLIC", value: func(c *Config) any { return &c.Hub.Public }, check: checkWebAddress,
		doc: "Public address of the hub, for example https://hub.example.com."},
	{key: "hub.proxies", env: "LOADOUT_HUB_PROXIES", value: func(c *Config) any { return &c.Hub.Proxies }, check: checkNetworks,
		doc: "Addresses or networks of reverse proxies whose forwarded client addresses are trusted."},
	{key: "hub.oidc_issuer", env: "LOADOUT_HUB_OIDC_ISSUER", value: func(c *Config) any { return &c.Hub.OIDCIssuer }, check: checkWebAddress,
		doc: "OpenID Connect issuer for sign-in, for example https://id.example.com; requires hub.public."},
	{key: "hub.oidc_client", env: "LOADOUT_HUB_OIDC_CLIENT", value: func(c *Config) any { return &c.Hub.OIDCClient },
		doc: "OpenID Connect client ID of the hub."},
	{key: "hub.oidc_secret", env: "LOADOUT_HUB_OIDC_SECRET", value: func(c *Config) any { return &c.Hub.OIDCSecret },
		doc: "Variable or secret with the client secret; empty means LOADOUT_OIDC_SECRET."},
	{key: "hub.oidc_scopes", env: "LOADOUT_HUB_OIDC_SCOPES", value: func(c *Config) any { return &c.Hub.OIDCScopes },
		doc: "Scopes to request besides openid; empty means profile and email."},
	{key: "hub.oidc_name", env: "LOADOUT_HUB_OIDC_NAME", value: func(c *Config) any { return &c.Hub.OIDCName },
		doc: "Claim with the user name; empty means preferred_username."},
	{key: "hub.oidc_groups", env: "LOADOUT_HUB_OIDC_GROUPS", value: func(c *Config) any { return &c.Hub.OIDCGroups },
		doc: "Claim with the groups of a user; empty means groups."},
	{key: "hub.oidc_everyone", env: "LOADOUT_HUB_OIDC_EVERYONE", value: func(c *Config) any { return &c.Hub.OIDCEveryone },
		doc: "Create an account for every user of the provider, not only for members of allowed groups."},
	{key: "hub.private", env: "LOADOUT_HUB_PRIVATE", value: func(c *Config) any { return &c.Hub.Private }, check: checkNetworks,
		doc: "Private networks allowed for models, MCP servers and skill sources of users, for example 10.1.2.0/24."},
	{key: "hub.import_from", env: "LOADOUT_HUB_IMPORT_FROM", value: func(c *Config) any { return &c.Hub.ImportFrom }, check: checkImportSources,
		doc: "Directories of this machine and ssh hosts from which users may import skills, such as /srv/skills and\nssh://git.example.com. The hub reads them with its own rights and ssh keys."},
	{key: "hub.runs", env: "LOADOUT_HUB_RUNS", value: func(c *Config) any { return &c.Hub.Runs }, check: inRange(1, 1000),
		doc: "Number of concurrent script runs per node. Further runs wait; users take turns."},
	{key: "hub.titles", env: "LOADOUT_HUB_TITLES", value: func(c *Config) any { return &c.Hub.Titles }, check: oneOf("model", "first_message"),
		doc: "Titles of conversations: model asks the model for one after the first answer; first_message takes the title\nfrom the first message, as does a hub without a model."},
	{key: "hub.sharing", env: "LOADOUT_HUB_SHARING", value: func(c *Config) any { return &c.Hub.Sharing }, check: oneOf("", "off", "members", "links"),
		doc: "Who can open shared snapshots of conversations: members (the default; signed-in users), links (also\nanyone with the link, if the owner chooses that), or off (nobody, and nothing can be shared)."},
	{key: "hub.share_links", env: "LOADOUT_HUB_SHARE_LINKS", value: func(c *Config) any { return &c.Hub.ShareLinks },
		doc: "Earlier form of sharing: links. Ignored if hub.sharing is set."},
	{key: "hub.share_days", env: "LOADOUT_HUB_SHARE_DAYS", value: func(c *Config) any { return &c.Hub.ShareDays }, check: inRange(1, 3650),
		doc: "Maximum lifetime of a shared conversation, in days."},
	{key: "hub.invitations", env: "LOADOUT_HUB_INVITATIONS", value: func(c *Config) any { return &c.Hub.Invitations }, check: oneOf("", "off", "admins", "owners"),
		doc: "Who can create links that invite users: owners (the default; administrators, and owners of groups to\ntheir groups), admins (administrators), or off (nobody, and existing links do not work)."},
	{key: "hub.rate", env: "LOADOUT_HUB_RATE", value: func(c *Config) any { return &c.Hub.Rate }, check: inRange(1, 100_000),
		doc: "Sustained requests per second per user."},
	{key: "hub.min_disk_mb", env: "LOADOUT_HUB_MIN_DISK_MB", value: func(c *Config) any { return &c.Hub.MinDisk }, check: inRange(1, 1_000_000),
		doc: "Minimum free space on the disk of the data directory, in MiB. A node with less is full and not ready."},
	{key: "hub.drain", env: "LOADOUT_HUB_DRAIN", value: func(c *Config) any { return &c.Hub.Drain }, check: inRange(1, 3600),
		doc: "Seconds that running requests have to finish when the hub stops."},
	{key: "hub.log", env: "LOADOUT_HUB_LOG", value: func(c *Config) any { return &c.Hub.Log }, check: oneOf("", "text", "json"),
		doc: "Log format on standard error: text or json; empty means text on a terminal and json elsewhere."},
}

func inRange(low, high int) func(any) error {
	return func(v any) error {
		if n := *v.(*int); n < low || n > high {
			return fmt.Errorf("%d is out of range %d to %d", n, low, high)
		}
		return nil
	}
}

// zeroOr returns a check that accepts 0 and all values that the given check
// accepts.
func zeroOr(check func(any) error) func(any) error {
	return func(v any) error {
		if *v.(*int) == 0 {
			return nil
		}
		return check(v)
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

// checkApproved returns an error unless every entry has the form skill=DIGEST.
func checkApproved(v any) error {
	for _, entry := range *v.(*[]string) {
		skill, digest, ok := strings.Cut(entry, "=")
		hex, is := strings.CutPrefix(digest, "sha256:")
		if !ok || !is || skill == "" || !skillfile.IsHash(hex) {
			return errors.New("expected SKILL=sha256:DIGEST entries with 64 lower-case hexadecimal digits")
		}
	}
	return nil
}

// checkRequirements returns an error unless every entry is a Python requirement
// with a name and versions.
func checkRequirements(v any) error {
	for _, entry := range *v.(*[]string) {
		if len(entry) > requirement.MaxLength || !requirement.IsReleased(entry) || requirement.IsDirect(entry) {
			return errors.New("expected names of Python packages with versions, such as pandas>=2")
		}
	}
	return nil
}

// checkHostSecrets returns an error unless every entry has the form
// host=SECRET.
func checkHostSecrets(v any) error {
	for _, entry := range *v.(*[]string) {
		host, name, ok := strings.Cut(entry, "=")
		if !ok || host == "" || strings.ContainsAny(host, "/@ ") || name == "" || strings.ContainsFunc(name, invalidNameRune) {
			return errors.New("expected HOST=SECRET entries such as git.example.com=GIT_TOKEN")
		}
	}
	return nil
}

// invalidNameRune reports whether r is not allowed in a secret's name.
func invalidNameRune(r rune) bool {
	return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// checkWebAddress returns an error if a registry's address is invalid. The
// error does not repeat the address, which may contain a password.
func checkWebAddress(v any) error {
	s := *v.(*string)
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return errors.New("expected a URL such as https://registry.example.com/path")
	}
	return nil
}

// defaults returns the default configuration.
func defaults() *Config {
	return &Config{
		Skills:  Skills{Enabled: true, Project: true, Home: true, Bundled: true, Keep: 5, Depth: 6, Watch: true, Update: "notify"},
		Servers: Servers{Connect: "on-load", Deadline: 20, Idle: 600, Safety: "MEDIUM"},
		Policy:  Policy{Presence: "cooperative", Threshold: "HIGH"},
		Sandbox: Sandbox{Enabled: true, Backend: "auto", MinTier: 3, MemoryMB: 512, Seconds: 60, DiskMB: 64, Network: []string{"*"}},
		Usage:   Usage{Enabled: true},
		Hub:     Hub{Address: "127.0.0.1:8484", Admin: "admin", Runs: 4, Titles: "model", ShareDays: 90, Rate: 100, MinDisk: 64, Drain: 10},
		from:    map[string]string{},
	}
}

// parse sets the value from a string, such as the value of an environment
// variable.
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
			return fmt.Errorf("not a number: %q", text)
		}
		*v = n
	case *string:
		*v = text
	case *map[string]Price:
		if err := parsePrices(v, text); err != nil {
			return err
		}
	case *map[string]NamedModel:
		if err := parseNames(v, text); err != nil {
			return err
		}
	case *[]string:
		if *v = splitList(s.path, text); len(*v) == 0 {
			return fmt.Errorf("empty list %q: unset the variable or give it a value", text)
		}
	}
	return s.validate(c)
}

func (s setting) validate(c *Config) error {
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
	return false, fmt.Errorf("expected true or false, got %q", s)
}

// splitList splits text at commas or, if paths is true, at the separator of
// PATH. It drops empty items.
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
