package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

// ErrNoGit says that a repository cannot be got without the git program, which is
// not there.
var ErrNoGit = errors.New("the git program is needed for this, and is not installed")

// StatusError says that a server answered with another status than it had to.
type StatusError struct {
	URL  string // without user, password and query
	Code int
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", e.URL, e.Code, http.StatusText(e.Code)))
}

// AddressError says that a host is not connected to because of its address.
// Options.Private lets most of them; those where a cloud keeps the secrets of
// its machines, nothing does.
type AddressError struct {
	Host    string
	Address string // "" where the host itself is what is wrong
	Why     string // in a few words, as "loopback"
	Never   bool   // no option lets it
}

func (e *AddressError) Error() string {
	if e.Address == "" || e.Address == e.Host {
		return fmt.Sprintf("%s is not connected to: its address is %s", e.Host, e.Why)
	}
	return fmt.Sprintf("%s is not connected to: its address %s is %s", e.Host, e.Address, e.Why)
}

// UntrustedError says that a place is not looked at, as it is a stranger who names it
// and a person would have to: see Options.Untrusted.
type UntrustedError struct {
	Location Location
	Why      string // what kind of place it is, as "a place of this machine"
}

func (e *UntrustedError) Error() string {
	return e.Location.where() + " is not looked at: it is " + e.Why + ", and no person named it"
}

// NotFoundError says that what a Location names is not there. It matches
// [fs.ErrNotExist].
type NotFoundError struct {
	What string   // with its kind, as `directory "docs"` or "repository https://…"
	Near []string // what is there and spelled alike, at most 3
	Hint string   // what else it may mean, or ""
}

func (e *NotFoundError) Error() string {
	s := "there is no " + e.What
	if len(e.Near) > 0 {
		s += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is makes the error match [fs.ErrNotExist].
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// DeniedError says that a host refused who asked: there was no credential for it,
// or not one that it takes.
type DeniedError struct {
	Host  string
	Shown bool // it was shown a credential
}

func (e *DeniedError) Error() string {
	if e.Shown {
		return e.Host + " does not take the credential that there is for it"
	}
	return e.Host + " asks for a credential, and there is none"
}

// DigestError says that what was downloaded is not what an index promised.
type DigestError struct {
	Name      string // of the skill
	Want, Got string // "sha256:" and hex
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("what was downloaded for %s is not what its index promises: it has the digest %s, not %s", e.Name, e.Got, e.Want)
}

// TooLargeError says that a download was ended where a limit was reached.
type TooLargeError struct {
	What  string // what was downloaded
	Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.What, e.Limit)
}
