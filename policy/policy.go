// Package policy defines the permissions that users give to run scripts and
// call tools. It stores these permissions and evaluates rules about tool calls.
//
// A permission is a [Grant]: a principal may use a subject, identified by the
// digest of its bytes, with the hosts, secrets and other access that the grant
// lists. A [Store] holds grants: [NewFileStore] is for processes on the same
// machine, [NewMemoryStore] for a single process, and [NewStore] for a
// database. [Rules] decide which tools may be called without approval. A
// [Record] is the audit record of a decision. [Bounds] limits the access of a
// sandbox.
//
// All functions fail closed: a file that is unreadable, damaged or owned by
// another user permits nothing.
//
// Start with [Grant] and [Rules.Decide].
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
	UserPrincipal    = "person"  // user; only a user can approve
	AgentPrincipal   = "agent"   // program controlled by a model
	ServicePrincipal = "service" // any other program
)

// Principal identifies the user or program that acts. Principals are equal if
// both fields are equal. A user and an agent may have the same ID. The zero
// value is invalid.
type Principal struct {
	ID   string `json:"id"`   // 1 to 256 bytes of printable characters
	Kind string `json:"kind"` // one of the kinds above
}

// LocalUser returns the user who runs this program. The ID is the user's name
// in the system's user database. If there is none, it is "uid:" and the numeric
// user ID. LocalUser does not trust environment variables.
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

// String returns the kind and the ID, for display.
func (p Principal) String() string { return p.Kind + " " + p.ID }

// Check returns an error if the kind is unknown or the ID is not 1 to 256 bytes
// of printable characters.
func (p Principal) Check() error {
	switch p.Kind {
	case UserPrincipal, AgentPrincipal, ServicePrincipal:
		return checkText("principal ID", p.ID, 1, maxID)
	}
	return fmt.Errorf("unknown kind of principal %q: want person, agent or service", p.Kind)
}

// Digest is a SHA-256 digest: "sha256:" followed by 64 lower-case hexadecimal
// digits. The zero value is invalid, and no grant covers it.
type Digest string

var digestForm = lazyregexp.New(`\Asha256:[0-9a-f]{64}\z`)

// Check returns an error if the digest is malformed.
func (d Digest) Check() error {
	if !digestForm.MatchString(string(d)) {
		return fmt.Errorf("invalid digest %.100q: want sha256: and 64 lower-case hexadecimal digits", string(d))
	}
	return nil
}

// Short returns the digest truncated to 12 digits, for display. A malformed
// digest is truncated in the same way.
func (d Digest) Short() string { return string(d[:min(len(d), len("sha256:")+12)]) }

// Problem describes something that was ignored because it is invalid, such as a
// damaged grant, a line of the audit log or a requested permission.
type Problem struct {
	Where   string `json:"where"` // a path or a field
	Message string `json:"message"`
}

// String returns the problem on one line.
func (p Problem) String() string { return p.Where + ": " + p.Message }

// checkText returns an error if the length of s is not between minBytes and
// maxBytes, or if s contains unprintable characters.
func checkText(what, s string, minBytes, maxBytes int) error {
	switch {
	case len(s) < minBytes:
		return fmt.Errorf("%s is missing", what)
	case len(s) > maxBytes:
		return fmt.Errorf("%s too long (%d bytes, limit %d)", what, len(s), maxBytes)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", what)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %+q has unprintable characters", what, s)
	}
	return nil
}
