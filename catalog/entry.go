package catalog

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Scope is the level of a skill's source, such as the user or the project. A
// skill with a higher scope takes precedence over a skill with the same name in
// a lower scope. Values other than the constants below are invalid.
type Scope uint8

// Scopes, lowest first.
const (
	Bundled Scope = iota // ships with the program
	Public               // offered to everyone, for example by a hub
	Group                // belongs to a team
	User                 // belongs to the user
	Project              // belongs to the user's current repository
)

var scopeNames = []string{"bundled", "public", "group", "user", "project"}

// String returns the name of the scope in lower case, such as "user", or
// "Scope(N)" for an invalid scope.
func (s Scope) String() string {
	if int(s) >= len(scopeNames) {
		return fmt.Sprintf("Scope(%d)", uint8(s))
	}
	return scopeNames[s]
}

// MarshalText implements [encoding.TextMarshaler]. It returns the result of
// [Scope.String], or an error if the scope is invalid.
func (s Scope) MarshalText() ([]byte, error) {
	if int(s) >= len(scopeNames) {
		return nil, fmt.Errorf("invalid scope %d: use a constant of package catalog", uint8(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It parses the name of a
// scope, and returns an error if there is no such scope.
func (s *Scope) UnmarshalText(b []byte) error {
	i := slices.Index(scopeNames, string(b))
	if i < 0 {
		return fmt.Errorf("unknown scope %q: use project, user, group, public or bundled", b)
	}
	*s = Scope(i)
	return nil
}

// Entry holds the metadata of a skill that is needed to select it. Entries are
// immutable and shared; do not modify them.
type Entry struct {
	// The following fields are those of [skill.Skill].
	Name         string
	DisplayName  string
	Description  string
	Version      string
	ArgumentHint string
	Tags         []string
	BindShells   []string
	Dependencies []string

	DisableModelInvocation bool // hidden from the model, but users can invoke it
	UserInvocable          bool
	Preload                bool
	// ProvidesTools means that the skill defines MCP servers, has a provider,
	// or declares a provider's tools.
	ProvidesTools bool
	// HasOwnName is false if the name is the folder's name.
	HasOwnName bool
	// Verbatim is false if the frontmatter was repaired.
	Verbatim bool
	archive  bool // whether Path is an archive and not a directory

	Scope  Scope
	Origin string // label of the source
	// Server is the label of the MCP server that publishes the skill, or "". The
	// Name of such a skill is its [Entry.Key], because the name in its
	// frontmatter is only a label: other servers and the user may use it too.
	Server string
	// Dir is the slash-separated path of the skill in its source, or "." if
	// the source is a single skill. Together with Origin, it identifies the
	// skill.
	Dir string
	// Path is the location of the skill for users: the path of its directory
	// or archive, or another address.
	Path string
	// Warnings is the number of errors and warnings about the skill.
	Warnings int

	file    string // spelling of SKILL.md
	id      fileID // identity of the directory or archive; zero if there is none
	content string // hash of the text passed to EntryOf; "" for sources of this package
	change  uint64 // hash of the stamp of the file; 0 if the file may change without changing its stamp
}

// EntryOf returns an entry for a skill in a custom source. It copies the skill's
// metadata. The entry includes a hash of the text, so that listing the same text
// again is not a change. dir is the slash-separated path of the skill in the
// source, or "." if the source is a single skill. If users find the skill at
// another location, set Path. Set Warnings from the skill's diagnostics. Do not
// modify the entry after [Source.List] returned it.
func EntryOf(src Source, s *skill.Skill, dir string) *Entry {
	e := newEntry(s, nil)
	e.Origin, e.Scope, e.Dir, e.Path = src.Origin(), src.Scope(), dir, dir
	e.content = skillfile.Hash(slices.Concat(s.Frontmatter, []byte{0}, []byte(s.Instructions)))
	if p, ok := src.(ServerSource); ok {
		e.Server, e.Name = p.Server(), e.Key()
		e.Dependencies, e.Preload, e.ProvidesTools = nil, false, false
	}
	return e
}

// equal reports whether other is e or an equal entry created by [EntryOf].
func (e *Entry) equal(other *Entry) bool {
	return e == other || e.content != "" && e.content == other.content && reflect.DeepEqual(e, other)
}

// Key returns a unique identifier of the skill in the catalog: "origin/dir".
func (e *Entry) Key() string { return e.Origin + "/" + e.Dir }

// share makes Dir and Name substrings of Path if possible, to save memory.
func (e *Entry) share() {
	for _, s := range []*string{&e.Dir, &e.Name} {
		if before, ok := strings.CutSuffix(e.Path, *s); ok {
			*s = e.Path[len(before):]
		}
	}
}

// newEntry returns an entry with a copy of the skill's metadata, without hidden
// characters. Its strings do not share memory with the parsed file.
func newEntry(s *skill.Skill, ds skill.Diagnostics) *Entry {
	return &Entry{
		Name:                   strings.Clone(s.Name),
		DisplayName:            strings.Clone(untrusted.New(s.DisplayName).ForTerminal()),
		Description:            strings.Clone(untrusted.New(s.Description).ForPage()),
		Version:                strings.Clone(untrusted.New(s.Version).ForTerminal()),
		ArgumentHint:           strings.Clone(untrusted.New(s.ArgumentHint).ForTerminal()),
		Tags:                   cleanAll(s.Tags),
		BindShells:             cloneAll(s.BindShells),
		Dependencies:           cloneAll(s.Dependencies),
		DisableModelInvocation: s.DisableModelInvocation,
		UserInvocable:          s.UserInvocable,
		Preload:                s.Preload,
		ProvidesTools:          s.MCPServers.Configs != nil || s.Provider != nil || slices.ContainsFunc(s.Tools, func(t skill.Tool) bool { return t.Provider != "" }),
		HasOwnName:             !s.Unnamed,
		Verbatim:               !s.Repaired,
		Warnings:               len(ds.Problems()),
	}
}

// cleanAll returns copies of ss without hidden characters.
func cleanAll(ss []string) []string {
	out := cloneAll(ss)
	for i, s := range out {
		out[i] = untrusted.New(s).ForTerminal()
	}
	return out
}

func cloneAll(ss []string) []string {
	if len(ss) == 0 {
		return nil
	}
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = strings.Clone(s)
	}
	return out
}

// Problem reports that a skill did not load or was repaired, or that a
// directory or source could not be read.
type Problem struct {
	Path   string `json:"path"`             // path of the skill, file or directory, or another address
	Origin string `json:"origin,omitempty"` // label of the source
	skill.Diagnostic
}

// String returns the problem on one line, and the fix, if any, on an indented
// second line.
func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", where, p.Line, max(p.Column, 1))
	}
	s := fmt.Sprintf("%s: %s: %s [%s]", where, p.Severity, p.Message, p.Code)
	if p.Fix != "" {
		s += "\n    " + p.Fix
	}
	return s
}

// Location returns the local path of the skill's directory, or "" if its files
// are not in a directory.
func (e *Entry) Location() string {
	if e.archive || e.id == (fileID{}) && !filepath.IsAbs(e.Path) {
		return ""
	}
	return e.Path
}

// File returns the name of the skill's SKILL.md in its actual spelling, or
// [skill.FileName] if it is unknown.
func (e *Entry) File() string {
	if e.file == "" {
		return skill.FileName
	}
	return e.file
}
