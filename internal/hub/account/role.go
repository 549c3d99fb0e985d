package account

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a user's role in a group. A higher role includes the permissions of the
// lower ones.
type Role int

// The roles, lowest first. The zero value means no membership.
const (
	Outsider   Role = iota
	Reporter        // sees and uses items
	Developer       // uploads and binds skills, and manages own items
	Maintainer      // manages all items of the group, and reviews
	Owner           // manages the group
)

var roleNames = []string{"outsider", "reporter", "developer", "maintainer", "owner"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return "no role"
	}
	return roleNames[r]
}

// ParseRole returns the member role with the given name.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames, name); i > 0 {
		return Role(i), nil
	}
	return Outsider, fmt.Errorf("unknown role %.40q: want reporter, developer, maintainer or owner", name)
}

// MarshalText implements [encoding.TextMarshaler]. It returns the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It parses the name of a
// member role.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// Scopes limits what a token can be used for. Scopes never add permissions.
type Scopes uint8

// The scopes. Combine them with |.
const (
	ScopeRead   Scopes = 1 << iota // read skills, kinds, sessions, usage
	ScopeWrite                     // upload and change skills, kinds and secrets
	ScopeRun                       // run skill code
	ScopeChat                      // chat, and answer approval requests
	ScopeMCP                       // connect an MCP client
	ScopeReview                    // approve code, and grant it secrets and hosts
	ScopeAdmin                     // manage accounts, groups, settings and tokens
	endOfScopes

	AllScopes = endOfScopes - 1
)

var scopeNames = []string{"read", "write", "run", "chat", "mcp", "review", "admin"}

// ParseScopes parses the names of one or more scopes, separated by spaces or
// commas.
func ParseScopes(text string) (Scopes, error) {
	var s Scopes
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.Index(scopeNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown scope %.40q; valid scopes: %s", name, strings.Join(scopeNames, ", "))
		}
		s |= 1 << i
	}
	if s == 0 {
		return 0, fmt.Errorf("no scopes given; valid scopes: %s", strings.Join(scopeNames, ", "))
	}
	return s, nil
}

// Names returns the names of the scopes.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names in the format accepted by [ParseScopes].
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// IsSubsetOf reports whether others includes all scopes in s. A token can only
// create tokens with scopes that it has itself.
func (s Scopes) IsSubsetOf(others Scopes) bool { return s&^others == 0 }
