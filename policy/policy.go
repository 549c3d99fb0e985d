// Package policy decides what may be done, and remembers what a person allowed.
//
// A permission is a [Grant]: a principal may use a subject, which is named by
// the digest of its bytes, with the grant's hosts, secrets and so on. Grants
// are kept in a [Store]: [Files] for processes that share a machine, [Memory]
// for one process. [Decide] answers whether a script of a skill may run;
// [Hold] ends a run whose grant was withdrawn. [Rules] answer whether a tool may
// be called, and [ToolDecision.WithGrants] whether a person allowed that before.
// [Audit] records decisions.
// [Bounds] is what a sandbox may give, and [Intersect] never widens it.
//
// Everything here fails closed: what cannot be read, is damaged, or belongs to
// somebody else permits nothing.
package policy

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// Kinds of principals.
const (
	Person  = "person"
	Agent   = "agent"   // a program led by a model
	Service = "service" // a program that is not
)

// Principal is who is acting. Two principals are the same where both fields
// are; a person and an agent may have the same ID.
type Principal struct {
	ID   string `json:"id"`   // 1 to 256 bytes of printable characters
	Kind string `json:"kind"` // one of the kinds above
}

// Local is the person who runs this program: by the name that the system's
// user database has for the user, else by the number of the user.
func Local() Principal {
	p := Principal{Kind: Person, ID: "uid:" + strconv.Itoa(os.Getuid())}
	var u *user.User
	var err error
	if uid := os.Getuid(); uid >= 0 {
		u, err = user.LookupId(strconv.Itoa(uid)) // user.Current may believe $USER
	} else {
		u, err = user.Current()
	}
	if err == nil && checkText("name", u.Username, 1, maxID) == nil {
		p.ID = u.Username
	}
	return p
}

// String renders the principal for people.
func (p Principal) String() string { return p.Kind + " " + p.ID }

func (p Principal) check() error {
	switch p.Kind {
	case Person, Agent, Service:
		return checkText("the id of a principal", p.ID, 1, maxID)
	}
	return fmt.Errorf("a principal is a person, an agent or a service, not %q", p.Kind)
}

// Digest names bytes: "sha256:" and 64 lower-case hexadecimal digits.
type Digest string

var digestForm = pattern.New(`\Asha256:[0-9a-f]{64}\z`)

// ParseDigest returns s as a digest, or an error where it has another form.
func ParseDigest(s string) (Digest, error) {
	if !digestForm().MatchString(s) {
		return "", fmt.Errorf("%.100q is no digest: it is sha256: and 64 digits of 0-9 and a-f", s)
	}
	return Digest(s), nil
}

// Short is the beginning of the digest, for people to tell digests apart.
func (d Digest) Short() string { return string(d[:min(len(d), len("sha256:")+12)]) }

// Problem is something that was left out because it cannot be used: a grant
// that is damaged, a line of the audit log, a field of what a skill asks.
type Problem struct {
	Where   string `json:"where"` // a path, or a field
	Message string `json:"message"`
}

// String renders the problem in one line.
func (p Problem) String() string { return p.Where + ": " + p.Message }

// checkText refuses text that is too long or too short in bytes, or that shows
// a reader something else than it is.
func checkText(what, s string, least, most int) error {
	switch {
	case len(s) < least:
		return fmt.Errorf("%s is missing", what)
	case len(s) > most:
		return fmt.Errorf("%s has %d bytes, more than %d", what, len(s), most)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not UTF-8", what)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %+q has characters that do not show", what, s)
	}
	return nil
}
