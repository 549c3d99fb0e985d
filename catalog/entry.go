package catalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// Scope says whose skill it is. A skill of a higher scope is preferred to one
// of the same name in a lower scope.
type Scope uint8

// Scopes, lowest first.
const (
	Bundled Scope = iota // comes with the program
	Public               // offered to everybody, as by a hub
	Group                // of a team
	User                 // the person's own
	Project              // of the repository that is worked on
)

var scopeNames = []string{"bundled", "public", "group", "user", "project"}

func (s Scope) String() string { return scopeNames[s] }

// Scopes lists all scopes, highest first.
func Scopes() []Scope { return []Scope{Project, User, Group, Public, Bundled} }

// MarshalText renders the scope by name.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a scope's name.
func (s *Scope) UnmarshalText(b []byte) error {
	i := slices.Index(scopeNames, string(b))
	if i < 0 {
		return fmt.Errorf("unknown scope %q: use project, user, group, public or bundled", b)
	}
	*s = Scope(i)
	return nil
}

// Entry is level 1 of one skill that a source offers: what is needed to
// choose it. Entries are immutable and shared; do not change them.
type Entry struct {
	Name         string
	DisplayName  string
	Description  string
	Version      string
	ArgumentHint string
	Tags         []string
	BindShells   []string
	Dependencies []string

	DisableModelInvocation bool // hidden from the model, usable by a person
	UserInvocable          bool
	Preload                bool
	// Brings says that it defines MCP servers, has a provider, or tools of one.
	Brings bool
	// Named is false where the skill goes by its folder's name.
	Named bool
	// Verbatim is false where the frontmatter was repaired to be read.
	Verbatim bool
	archive  bool // Path is an archive, not a directory

	Scope  Scope
	Origin string // label of the source
	// Dir is the slashed path of the skill within its source, "." for a
	// source that is one skill; with Origin it identifies the skill.
	Dir string
	// Path tells a person where the skill is: the path of its directory or
	// archive, or another address.
	Path string
	// Warnings counts the findings about the skill that are worth mending.
	Warnings int

	file string // spelling of SKILL.md
	id   fileID // of the directory or archive, zero where there is none
}

// Key identifies the skill among all sources: "origin/dir".
func (e *Entry) Key() string { return e.Origin + "/" + e.Dir }

// Title is the display name, or the name where there is none.
func (e *Entry) Title() string {
	if e.DisplayName != "" {
		return e.DisplayName
	}
	return e.Name
}

// share lets strings that are parts of the path use its memory.
func (e *Entry) share() {
	for _, s := range []*string{&e.Dir, &e.Name} {
		if before, ok := strings.CutSuffix(e.Path, *s); ok {
			*s = e.Path[len(before):]
		}
	}
}

// newEntry copies what a catalog keeps of a skill, and no more: its strings
// share no memory with the file they were read from.
func newEntry(s *skill.Skill, ds skill.Diagnostics) *Entry {
	return &Entry{
		Name:                   strings.Clone(s.Name),
		DisplayName:            strings.Clone(s.DisplayName),
		Description:            strings.Clone(s.Description),
		Version:                strings.Clone(s.Version),
		ArgumentHint:           strings.Clone(s.ArgumentHint),
		Tags:                   cloneAll(s.Tags),
		BindShells:             cloneAll(s.BindShells),
		Dependencies:           cloneAll(s.Dependencies),
		DisableModelInvocation: s.DisableModelInvocation,
		UserInvocable:          s.UserInvocable,
		Preload:                s.Preload,
		Brings:                 s.MCPServers.Configs != nil || s.Provider != nil || slices.ContainsFunc(s.Tools, func(t skill.Tool) bool { return t.Provider != "" }),
		Named:                  s.Named(),
		Verbatim:               s.Verbatim(),
		Warnings:               len(ds.Noteworthy()),
	}
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

// Problem is a finding about a place where a skill was expected: one that did
// not load, one that was repaired, a directory that cannot be read.
type Problem struct {
	Path   string `json:"path"`
	Origin string `json:"origin,omitempty"`
	skill.Diagnostic
}

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

// Location is where a reader of the skill on this machine finds its files: the
// path of its directory, "" where the files are not in one.
func (e *Entry) Location() string {
	if e.archive || e.id == (fileID{}) && !filepath.IsAbs(e.Path) {
		return ""
	}
	return e.Path
}

// File is the name of the skill's SKILL.md, as it is spelled there.
func (e *Entry) File() string {
	if e.file == "" {
		return skill.FileName
	}
	return e.file
}
