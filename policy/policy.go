// Package policy decides which scripts may run and which tools may be called,
// and stores the permissions that users gave.
//
// A permission is a [Grant]: a principal may use a subject, identified by the
// digest of its bytes, with the hosts, secrets and so on that the grant lists.
// A [Store] holds grants: [NewFileStore] for processes that share a machine,
// [NewMemoryStore] for one process, [NewStore] for a database. [Decide] answers
// whether a script of a skill may run. [Rules] answer whether a tool may be
// called, and [ToolDecision.WithGrants] whether a user approved the call before.
// A [Record] reports a decision. [Bounds] limits what a sandbox may give.
//
// Everything here fails closed: a file that is unreadable, damaged or owned by
// another user permits nothing.
//
// Start reading at [Decide] and [Rules.Decide].
package policy

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Kinds of principals.
const (
	UserPrincipal    = "person"
	AgentPrincipal   = "agent"   // a program led by a model
	ServicePrincipal = "service" // any other program
)

// Principal identifies who acts. Principals are equal if both fields are. A
// user and an agent may have the same ID.
type Principal struct {
	ID   string `json:"id"`   // 1 to 256 bytes of printable characters
	Kind string `json:"kind"` // one of the kinds above
}

// LocalUser returns the user who runs this program. Its ID is the name in the
// system's user database, or the number of the user if there is none.
func LocalUser() Principal {
	p := Principal{Kind: UserPrincipal, ID: "uid:" + strconv.Itoa(os.Getuid())}
	var u *user.User
	var err error
	if uid := os.Getuid(); uid >= 0 {
		u, err = user.LookupId(strconv.Itoa(uid)) // user.Current may trust $USER
	} else {
		u, err = user.Current()
	}
	if err == nil && checkText("name", u.Username, 1, maxID) == nil {
		p.ID = u.Username
	}
	return p
}

// String formats the principal for users.
func (p Principal) String() string { return p.Kind + " " + p.ID }

// Check returns an error unless the kind is known and the ID has 1 to 256 bytes of
// printable characters.
func (p Principal) Check() error {
	switch p.Kind {
	case UserPrincipal, AgentPrincipal, ServicePrincipal:
		return checkText("principal ID", p.ID, 1, maxID)
	}
	return fmt.Errorf("unknown kind of principal %q: want person, agent or service", p.Kind)
}

// Digest identifies bytes: "sha256:" and 64 lower-case hexadecimal digits.
type Digest string

var digestForm = lazyregexp.New(`\Asha256:[0-9a-f]{64}\z`)

// Check returns an error unless the digest has the right form.
func (d Digest) Check() error {
	if !digestForm().MatchString(string(d)) {
		return fmt.Errorf("invalid digest %.100q: want sha256: and 64 lower-case hexadecimal digits", string(d))
	}
	return nil
}

// Short returns the beginning of the digest, for display.
func (d Digest) Short() string { return string(d[:min(len(d), len("sha256:")+12)]) }

// Problem reports something that was ignored because it is invalid, such as a
// damaged grant, a line of the audit log or a requested permission.
type Problem struct {
	Where   string `json:"where"` // a path or a field
	Message string `json:"message"`
}

// String formats the problem on one line.
func (p Problem) String() string { return p.Where + ": " + p.Message }

// checkText returns an error if s is too short or too long in bytes, or has
// characters that are not printable.
func checkText(what, s string, least, most int) error {
	switch {
	case len(s) < least:
		return fmt.Errorf("%s is missing", what)
	case len(s) > most:
		return fmt.Errorf("%s too long (%d bytes, limit %d)", what, len(s), most)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not UTF-8", what)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %+q has unprintable characters", what, s)
	}
	return nil
}
