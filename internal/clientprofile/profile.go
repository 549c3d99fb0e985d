// Package clientprofile describes MCP clients: how much of a server's text they
// show to their models, which parts of a result they show, and which skills
// they read themselves. Each profile is based on recorded requests from the
// client, or names its source.
package clientprofile

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Profile describes an MCP client. Profiles are constant and may be compared by
// their addresses.
type Profile struct {
	// Title is the name of the product; "" in the profile of unknown clients.
	Title string
	// Names are the names that the client sends in clientInfo.
	Names []string
	// UserAgents are prefixes of its User-Agent header. In protocol versions
	// before 2026-07-28, an HTTP request without a session identifies its client
	// only by this header.
	UserAgents []string
	// Recording is the client and version whose requests to a model were recorded,
	// as in testdata/recordings; "" if Source is the only evidence.
	Recording string
	// Source names the documentation or code behind the profile.
	Source string

	// Instructions is the number of characters of a server's instructions that
	// reach the model, and Description is that of a tool's description. 0 means
	// that the number is not known; [All] means no limit.
	Instructions, Description int
	// Catalog is the maximum number of characters in the list of skills.
	Catalog int
	// Reads lists the directories from which the client lists skills itself:
	// ~/DIR in the home directory and ./DIR in the project. DIR/** includes
	// subdirectories.
	Reads []string
	// Parents means that the client reads ./DIR not only in its working directory,
	// but also in the parents of it, up to the root of the repository.
	Parents bool
	// Plugins is the directory of Claude plugins, ~/DIR, from which the client lists
	// the skills of enabled plugins; "" if it does not know them.
	Plugins string
	// Variable is the environment variable that replaces the directory Moved,
	// which is ~ or ~/DIR; "" means that there is none.
	Variable, Moved string
	// Elicitation and Roots report whether the client declares these
	// capabilities. They are for documentation; programs use the capabilities
	// declared on a connection.
	Elicitation, Roots bool
	// StructuredOnly means that if a result has structured content, the model
	// sees only that. Instructions would then be one line of JSON, which costs
	// up to 1.8 times as many tokens.
	StructuredOnly bool
}

// All is the limit for a client that shows text of any length in full.
const All = math.MaxInt32

// longCatalog is the maximum size, in characters, of the skill list for clients
// that show long text. It is 2 % of a context of 200,000 tokens. Codex and
// Claude Code limit their own lists to 1 or 2 %.
const longCatalog = 16_000

// profiles lists the known clients.
var profiles = []*Profile{
	{
		Title: "Claude Code", Names: []string{"claude-code"}, UserAgents: []string{"claude-code/"}, Recording: "claude-code 2.1.197",
		Source:       "anthropics/claude-code#79944",
		Instructions: 2048, Description: 2048, Catalog: longCatalog, StructuredOnly: true, Elicitation: true, Roots: true,
		Reads:    []string{"~/.claude/skills", "./.claude/skills"},
		Parents:  true,
		Plugins:  "~/.claude/plugins",
		Variable: "CLAUDE_CONFIG_DIR", Moved: "~/.claude",
	},
	{
		Title: "Codex", Names: []string{"codex-mcp-client"}, UserAgents: []string{"codex"}, Recording: "codex 0.169.0",
		Source:       "as_function_call_output_payload in openai/codex",
		Instructions: All, Description: All, Catalog: longCatalog, StructuredOnly: true, Elicitation: true,
		Reads:    []string{"~/.agents/skills/**", "~/.codex/skills/**", "./.agents/skills/**", "./.codex/skills/**"},
		Parents:  true,
		Variable: "CODEX_HOME", Moved: "~/.codex",
	},
	{
		Title: "Gemini CLI", Names: []string{"gemini-cli-mcp-client"}, Recording: "gemini-cli 0.61.0",
		Source:       "homedir in google-gemini/gemini-cli",
		Instructions: All, Description: All, Catalog: longCatalog, Roots: true,
		Reads:    []string{"~/.agents/skills", "~/.gemini/skills", "./.agents/skills", "./.gemini/skills"},
		Variable: "GEMINI_CLI_HOME", Moved: "~",
	},
	{
		Title: "opencode", Names: []string{"opencode"}, Recording: "opencode 1.18.33",
		Source:       "anomalyco/opencode#32074: newer versions show structured content only; 1.18 shows the text",
		Instructions: All, Description: All, Catalog: longCatalog, StructuredOnly: true, Roots: true,
		Reads: []string{"~/.agents/skills/**", "~/.claude/skills/**", "~/.config/opencode/skills/**", "~/.opencode/skills/**",
			"./.agents/skills/**", "./.claude/skills/**", "./.opencode/skills/**"},
		Parents: true,
	},
	{
		// The names are nameLong of the products; the agent is NAME/VERSION.
		Title: "Visual Studio Code", Names: []string{"Visual Studio Code", "Visual Studio Code - Insiders", "Code - OSS"},
		UserAgents:  []string{"Visual Studio Code", "Code - OSS/"},
		Source:      "mcpServerRequestHandler.ts, mcpLanguageModelToolContribution.ts and extHostMcp.ts in microsoft/vscode",
		Description: unknown.Description, Catalog: unknown.Catalog, StructuredOnly: true,
	},
}

// unknown is the profile of all other clients. Nearly all clients show tool
// descriptions to the model, but many do not show server instructions. Results
// contain both text and structured content, because clients differ in which of
// them they show.
var unknown = &Profile{Description: 2048, Catalog: 2000}

// Dirs holds the directories and the environment of a client on this machine.
// Unknown fields are empty.
type Dirs struct {
	Home    string   // the home directory
	Project []string // the working directory and its parents up to the root of its repository
	// Getenv returns environment variables of the client, like os.Getenv.
	Getenv func(string) string
}

// ReadsItself returns a function that reports whether a client in d itself lists
// the skill in a directory, or nil if the client lists no skills.
func (p *Profile) ReadsItself(d Dirs) func(dir string) bool {
	type place struct {
		root string
		deep bool
	}
	var places []place
	for _, read := range p.Reads {
		read, deep := strings.CutSuffix(read, "/**")
		for _, root := range p.rootsOf(read, d) {
			places = append(places, place{root, deep})
		}
	}
	if len(places) == 0 {
		return nil
	}
	return func(dir string) bool {
		return slices.ContainsFunc(places, func(l place) bool {
			below, err := filepath.Rel(l.root, dir)
			if err != nil || below == "." || !filepath.IsLocal(below) {
				return false
			}
			return l.deep || !strings.ContainsRune(below, filepath.Separator)
		})
	}
}

// PluginDir returns the directory of Claude plugins that a client in d knows, or "".
func (p *Profile) PluginDir(d Dirs) string {
	if p.Plugins == "" {
		return ""
	}
	for _, dir := range p.rootsOf(p.Plugins, d) {
		return dir
	}
	return ""
}

// rootsOf returns the directories in d that match read, an element of p.Reads
// without its suffix /**.
func (p *Profile) rootsOf(read string, d Dirs) (dirs []string) {
	if rel, ok := strings.CutPrefix(read, "./"); ok {
		for i, dir := range d.Project {
			if dir == d.Home || i > 0 && !p.Parents { // the home directory is not a project
				break
			}
			dirs = append(dirs, filepath.Join(dir, filepath.FromSlash(rel)))
		}
		return dirs
	}
	if rel, ok := strings.CutPrefix(read, p.Moved+"/"); ok && p.Variable != "" && d.Getenv != nil {
		if moved := d.Getenv(p.Variable); moved != "" {
			if !filepath.IsAbs(moved) && len(d.Project) > 0 {
				moved = filepath.Join(d.Project[0], moved)
			}
			return []string{filepath.Join(moved, filepath.FromSlash(rel))}
		}
	}
	if d.Home == "" {
		return nil
	}
	return []string{filepath.Join(d.Home, filepath.FromSlash(strings.TrimPrefix(read, "~/")))}
}

// Named returns the profile of the client that sends name in clientInfo.
func Named(name string) *Profile {
	for _, p := range profiles {
		if slices.Contains(p.Names, name) {
			return p
		}
	}
	return unknown
}

// WithUserAgent returns the profile of the client that sends the given
// User-Agent header.
func WithUserAgent(agent string) *Profile {
	for _, p := range profiles {
		if slices.ContainsFunc(p.UserAgents, func(prefix string) bool { return strings.HasPrefix(agent, prefix) }) {
			return p
		}
	}
	return unknown
}

// Unknown returns the profile of unknown clients.
func Unknown() *Profile { return unknown }

// Profiles returns the profiles of the known clients, which must not be modified.
func Profiles() []*Profile { return profiles }
