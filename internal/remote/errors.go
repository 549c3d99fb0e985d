package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

// ErrNoGit is returned if opening a repository requires the git program, but it
// is not installed.
var ErrNoGit = errors.New("git is required but not installed")

// StatusError is returned if a response has an unexpected HTTP status.
type StatusError struct {
	URL  string // without user, password and query
	Code int
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", e.URL, e.Code, http.StatusText(e.Code)))
}

// AddressError is returned if connections to a host's address are not allowed.
// Options.Private can allow most addresses, but never those of cloud metadata
// services.
type AddressError struct {
	Host          string
	Address       string // "" if the host itself is invalid
	Reason        string // a few words, for example "loopback"
	AlwaysBlocked bool   // whether no option can allow it
}

func (e *AddressError) Error() string {
	if e.Address == "" || e.Address == e.Host {
		return fmt.Sprintf("connection to %s blocked: its address is %s", e.Host, e.Reason)
	}
	return fmt.Sprintf("connection to %s blocked: its address %s is %s", e.Host, e.Address, e.Reason)
}

// UntrustedError is returned for a location that only the user may name. See
// Options.Untrusted.
type UntrustedError struct {
	Location Location
	Reason   string // why only the user may name the location
}

func (e *UntrustedError) Error() string {
	return "untrusted location " + e.Location.displayURL() + " not opened: " + e.Reason
}

// NotFoundError is returned if nothing exists at a Location. It matches
// [fs.ErrNotExist].
type NotFoundError struct {
	What        string   // kind and name, for example `directory "docs"` or "repository https://…"
	Suggestions []string // up to 3 similar names
	Hint        string   // other possible cause, or ""
}

func (e *NotFoundError) Error() string {
	s := e.What + " not found"
	if len(e.Suggestions) > 0 {
		s += "; did you mean " + strings.Join(e.Suggestions, ", ") + "?"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is reports whether target is [fs.ErrNotExist].
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// DeniedError is returned if a host denied access. CredentialSent reports
// whether the host rejected a credential.
type DeniedError struct {
	Host           string
	CredentialSent bool
}

func (e *DeniedError) Error() string {
	if e.CredentialSent {
		return e.Host + " rejected the credential"
	}
	return e.Host + " requires a credential and none is configured"
}

// DigestError is returned if the digest of a download differs from the digest
// in the index.
type DigestError struct {
	Name      string // skill name
	Want, Got string // "sha256:" and hex
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("digest mismatch for %s: got %s, want %s from the index", e.Name, e.Got, e.Want)
}

// TooLargeError is returned if a download exceeds a limit.
type TooLargeError struct {
	What  string // what was downloaded, for example its URL
	Limit int64  // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s exceeds the limit of %d bytes", e.What, e.Limit)
}
