// Package clientconfig writes the entry for Loadout's MCP server into the
// configuration file of an MCP client, and takes it out again.
//
// A [Target] says which file: a [Client] of the table, a [Scope], and the
// [Place] it is looked for in. [Plan] and [PlanUndo] read that file and return
// a [Change], which can be shown with its Diff before Apply writes it.
// [Snippet] is the same entry as text to paste by hand.
//
// # What happens to the file
//
// Everything but the one entry stays byte for byte: comments, order,
// indentation, trailing commas, line ends, a byte order mark, unknown keys. An
// entry of the same name is replaced whole, with the comments inside it. Where
// it holds the same already, in any spelling, nothing changes. Every new text
// is parsed and compared with the old one before it is offered, and a file
// that does not parse, or has the entry in a form that cannot be edited safely,
// is refused with a [FileError].
//
// # Backups
//
// Before a connecting Apply changes a file that exists, its bytes are in
// FILE.loadout-backup beside FILE (and not beside what it may link to), readable
// by the owner only. A backup is never overwritten: when one with other bytes is
// there, the next goes to FILE.loadout-backup-2 and so on up to -9, after which
// Plan refuses until some are deleted; one with the same bytes serves again.
// An undo makes none, and removes them all, but for one that holds an entry of
// the person's own that Loadout replaced. It does not restore a backup: it takes
// out the entry, for the file may have been edited since. Only where the file is
// exactly what Loadout made of a backup does it come back to the byte.
//
// # Secrets
//
// These files hold credentials. Errors carry positions, never content. A diff
// shows the values of the new entry only; elsewhere it shows keys and structure,
// and of an entry that goes its type, command, flags and the host of its URL.
//
// # Limits
//
// A file has at most 8 MiB, is UTF-8, and nests at most 500 deep, in TOML 64
// (which also bounds the parts of a key). The package reads no environment variable; see [Place]. It keeps no state and
// starts no goroutines; its functions may be called from several at once.
package clientconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Format is the syntax of a configuration file.
type Format string

// The formats. JSON is read with comments and trailing commas allowed, and
// written without adding any.
const (
	JSON Format = "json"
	TOML Format = "toml"
)

// Scope says for whom an entry counts.
type Scope string

// The scopes: every project of the person, or one project.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Client is one program that can be given an MCP server, and what its
// configuration looks like. The values come from [All] and [Lookup].
type Client struct {
	// Name is what the person types; Title is the product's own name.
	Name, Title string
	// Format is the syntax of its file.
	Format Format
	// Key is the member (JSON) or table (TOML) that holds the servers by name.
	Key string
	// Scopes are those the client has; the first is the default.
	Scopes []Scope
	// Remote says that its file can name a server by URL.
	Remote bool
	// Next tells the person what to do once the file is written.
	Next string

	stdioType string // value of "type" for a command, "" for no such member
	httpType  string // the same for a URL
	urlKey    string // member that holds a Streamable HTTP URL
	noRemote  string // what to do instead, where Remote is false
	plain     bool   // the client reads JSON without comments
	where     map[Scope]location
}

// table lists the clients in the order they are shown.
//
// Sources: code.claude.com/docs/en/mcp, modelcontextprotocol.io (Claude
// Desktop), cursor.com/docs/mcp, code.visualstudio.com MCP configuration
// reference, the Codex configuration reference, geminicli.com MCP servers.
var table = []Client{
	{
		Name: "claude-code", Title: "Claude Code",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "stdio", httpType: "http", urlKey: "url", plain: true,
		Next: "start a new Claude Code session; /mcp lists the server",
		where: map[Scope]location{
			User: {env: "CLAUDE_CONFIG_DIR", inEnv: ".claude.json", home: ".claude.json",
				note: "Claude Code writes this file itself while it runs: end its sessions first, or see with /mcp that the entry stayed"},
			Project: {project: ".mcp.json",
				note: "Claude Code asks each person once before it uses the servers of a project"},
		},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User}, plain: true,
		noRemote: "add the URL in Claude Desktop under Settings, Connectors, or connect the local command instead",
		Next:     "quit Claude Desktop and start it again",
		where: map[Scope]location{
			User: {
				appData: "Claude/claude_desktop_config.json",
				// Installed as a Windows package, it reads and writes a private
				// copy of %APPDATA% (anthropics/claude-code#26073).
				packaged: "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
			},
		},
	},
	{
		Name: "cursor", Title: "Cursor",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url",
		Next:   "see in the settings of Cursor, under Tools and MCP, that the server is switched on",
		where: map[Scope]location{
			User:    {home: ".cursor/mcp.json"},
			Project: {project: ".cursor/mcp.json"},
		},
	},
	{
		Name: "vscode", Title: "VS Code",
		Format: JSON, Key: "servers", Scopes: []Scope{User, Project}, Remote: true,
		stdioType: "stdio", httpType: "http", urlKey: "url",
		Next: "run \"MCP: List Servers\" in VS Code and start the server",
		where: map[Scope]location{
			User: {appData: "Code/User/mcp.json",
				note: "this is the default profile of VS Code; for another profile or build name its mcp.json as the file"},
			Project: {project: ".vscode/mcp.json"},
		},
	},
	{
		Name: "codex", Title: "Codex",
		Format: TOML, Key: "mcp_servers", Scopes: []Scope{User, Project}, Remote: true,
		urlKey: "url",
		Next:   "start a new Codex session; /mcp lists the server",
		where: map[Scope]location{
			User: {env: "CODEX_HOME", inEnv: "config.toml", home: ".codex/config.toml"},
			Project: {project: ".codex/config.toml",
				note: "Codex reads this file only in a project it was told to trust"},
		},
	},
	{
		Name: "gemini", Title: "Gemini CLI",
		Format: JSON, Key: "mcpServers", Scopes: []Scope{User, Project}, Remote: true,
		// Its "url" alone meant SSE, and "type" was refused by some versions.
		urlKey: "httpUrl",
		Next:   "start Gemini CLI again; /mcp lists the server",
		where: map[Scope]location{
			User:    {env: "GEMINI_CLI_HOME", inEnv: ".gemini/settings.json", home: ".gemini/settings.json"},
			Project: {project: ".gemini/settings.json"},
		},
	},
}

// All returns the clients in the order they are shown. The slice is the
// caller's.
func All() []Client {
	all := slices.Clone(table)
	for i := range all {
		all[i].Scopes = slices.Clone(all[i].Scopes)
	}
	return all
}

// Names returns the names of all clients, in the order of [All].
func Names() []string {
	var names []string
	for _, c := range table {
		names = append(names, c.Name)
	}
	return names
}

// Lookup returns the client of that name. The error is an [ErrUnknown] and
// lists the names there are.
func Lookup(name string) (Client, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, kindError{ErrUnknown, fmt.Sprintf("%q is not a client Loadout knows; use one of %s", name, strings.Join(Names(), ", "))}
}

// scope gives the default for "" and refuses one the client has not.
func (c Client) scope(s Scope) (Scope, error) {
	if s == "" && len(c.Scopes) > 0 {
		return c.Scopes[0], nil
	}
	if slices.Contains(c.Scopes, s) {
		return s, nil
	}
	var have []string
	for _, s := range c.Scopes {
		have = append(have, string(s))
	}
	return "", kindError{ErrUnsupported, fmt.Sprintf("%s has no %q scope; use %s", c.Title, s, strings.Join(have, " or "))}
}
