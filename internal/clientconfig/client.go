// Package clientconfig writes the entry for Loadout's MCP server into the
// configuration file of an MCP client, and removes it again.
//
// A [Target] selects the file by [Client], [Scope] and [Environment]. [Plan]
// and [PlanUndo] read the file and return a [Change], whose Diff can be shown
// before Apply writes it. [Snippet] returns the entry as text to paste.
//
// # What happens to the file
//
// Everything except the entry is preserved byte for byte: comments, order,
// indentation, trailing commas, line endings, a byte order mark, and unknown
// keys. An existing entry with the same name is replaced completely, including
// its comments, unless it is already equivalent. Each new text is parsed and
// compared with the old one before it is written. A file that cannot be parsed,
// or whose entry cannot be edited safely, is rejected with a [FileError].
//
// # Backups
//
// Before Apply connects a client whose file exists, it copies the file to
// FILE.loadout-backup, readable only by the owner. The backup is next to FILE,
// even if FILE is a symlink. A backup is never overwritten: if it exists with
// different content, the next one is FILE.loadout-backup-2, and so on up to -9,
// after which Plan fails until some are deleted. A backup with the same content
// is reused. An undo creates no backup and deletes all of them, except those
// with a replaced entry that Loadout may not have written. An undo removes the
// entry instead of restoring a backup, because the file may have been edited
// since. There is one exception: if the file is exactly what Loadout wrote from
// a backup, that backup is restored byte for byte, even if it contains an entry
// that starts another program.
//
// # Secrets
//
// These files contain credentials. Errors contain positions but no content. A
// diff shows only the values of the new entry. For the rest of the file it
// shows keys and structure, and for a removed entry also the type, the command,
// flags and the host of the URL.
//
// # Limits
//
// A file must be UTF-8 with at most 8 MiB and at most 500 nesting levels. For
// TOML the limit is 64 levels, which also applies to the parts of a key. The
// package reads no environment variables; see [Environment]. It has no state
// and starts no goroutines. Its functions are safe for concurrent use.
package clientconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Format is the syntax of a configuration file.
type Format string

// Formats of configuration files. JSON may contain comments and trailing
// commas; this package adds none.
const (
	JSON Format = "json"
	TOML Format = "toml"
	YAML Format = "yaml"
)

// Scope selects the projects to which an entry applies.
type Scope string

// Scopes: all projects of the user, or one project.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Client describes an MCP client and the format of its configuration. [All] and
// [Lookup] return clients.
type Client struct {
	// Name is the name that users type; Title is the product name.
	Name, Title string
	// Format is the syntax of the configuration file.
	Format Format
	// Key is the JSON or YAML member or the TOML table that contains the servers
	// by name.
	Key string
	// Scopes lists the supported scopes. The first is the default.
	Scopes []Scope
	// Remote reports whether an entry can refer to a server by URL.
	Remote bool
	// Next tells the user what to do after the change.
	Next string
	// Note is a fact about the client that users should know; "" if there is
	// none.
	Note string
	// Source is the URL of the file's documentation.
	Source string
	// TestedVersion is the version of the client with which the format was
	// tested: the client started the command of an entry, in test/clients or by
	// hand. It is "" if the format is known from documentation only.
	TestedVersion string
	// Importable reports whether the entries of other servers have a format that
	// can be imported.
	Importable bool

	typeKey   string // member that holds the type of the server; "" means "type"
	stdioType string // value of that member for a command; "" omits the member
	httpType  string // value of that member for a URL; "" omits the member
	urlKey    string // member that holds a Streamable HTTP URL
	command   string // member that holds the command; "" means "command"
	// envVarsKey is the member that names the environment variables which the
	// client passes to the server; "" if it passes all, or if there is no member.
	envVarsKey string
	joined     bool   // whether that member is a list of the command and its arguments
	named      bool   // whether the entry has a member "name"
	always     object // further members of each entry
	noRemote   string // alternative for the user if Remote is false
	plain      bool   // whether the client rejects comments in JSON
	where      map[Scope]location
	traces     traces
}

// All returns all clients in display order. The caller may modify the slice.
func All() []Client {
	all := slices.Clone(clients)
	for i := range all {
		all[i].Scopes = slices.Clone(all[i].Scopes)
	}
	return all
}

// Names returns the names of all clients, in the order of [All].
func Names() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// ImportNames returns the names of the clients from which servers can be
// imported, in the order of [All].
func ImportNames() []string {
	var names []string
	for _, c := range clients {
		if c.Importable {
			names = append(names, c.Name)
		}
	}
	return names
}

// Lookup returns the client with the given name. For an unknown name, it
// returns an [ErrUnknown] that lists the known names.
func Lookup(name string) (Client, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, kindError{ErrUnknown, fmt.Sprintf("unknown client %q; use one of %s", name, strings.Join(Names(), ", "))}
}

// resolveScope returns s, or the client's default if s is "". It returns an
// error if the client does not support the scope.
func (c Client) resolveScope(s Scope) (Scope, error) {
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
