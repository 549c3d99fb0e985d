package account

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody is in a group. A higher one may do whatever a lower one may.
type Role int

// Roles, the least first. The zero value is not a member.
const (
	Outsider   Role = iota
	Reporter        // reads and uses
	Developer       // uploads, binds, and manages what he made
	Maintainer      // manages what is in the group, and reviews
	Owner           // manages the group
)

var roleNames = []string{"outsider", "reporter", "developer", "maintainer", "owner"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return "no role"
	}
	return roleNames[r]
}

// ParseRole reads the role of a member. It fails for what a member cannot be.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames, name); i > 0 {
		return Role(i), nil
	}
	return Outsider, fmt.Errorf("%.40q is no role; write reporter, developer, maintainer or owner", name)
}

// Scopes are what a token may be used for. They take rights away, and give none.
type Scopes uint8

// Scopes, which are added up with |.
const (
	ScopeRead   Scopes = 1 << iota // read skills, kinds, sessions, usage
	ScopeWrite                     // upload and change them, and secrets
	ScopeRun                       // run code of skills
	ScopeChat                      // hold conversations, and answer what is asked in them
	ScopeMCP                       // connect an MCP client
	ScopeReview                    // approve code, and grant it secrets and hosts
	ScopeAdmin                     // manage accounts, groups, settings, and tokens themselves
	endOfScopes

	AllScopes = endOfScopes - 1
)

var scopeNames = []string{"read", "write", "run", "chat", "mcp", "review", "admin"}

// ParseScopes reads names of scopes with spaces or commas between them. It fails
// where there is none, and for one that it does not know.
func ParseScopes(text string) (Scopes, error) {
	var s Scopes
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.Index(scopeNames, name)
		if i < 0 {
			return 0, fmt.Errorf("%.40q is no scope; there are %s", name, strings.Join(scopeNames, ", "))
		}
		s |= 1 << i
	}
	if s == 0 {
		return 0, fmt.Errorf("no scope is named; there are %s", strings.Join(scopeNames, ", "))
	}
	return s, nil
}

// Names are the scopes by name.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String has the names as [ParseScopes] reads them.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// Within reports whether there is no scope that others lack: a token makes another
// one within its own scopes alone.
func (s Scopes) Within(others Scopes) bool { return s&^others == 0 }
