package sandbox

import (
	"errors"
	"fmt"
)

// ErrEnded indicates that a sandbox ended before an operation finished. Methods
// of [Sandbox] may wrap it.
var ErrEnded = errors.New("sandbox has ended")

// UnavailableError reports that a backend cannot be used on this machine.
type UnavailableError struct {
	Backend string
	Missing string // what is missing, such as "bwrap", or what failed
	Err     error  // error from the system; may be nil
	Fix     string // how to make the backend available
}

// Error returns a message without the fix.
func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("sandbox %s: %s", e.Backend, e.Missing)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err, which may be nil.
func (e *UnavailableError) Unwrap() error { return e.Err }

// UnsupportedError reports that a backend does not support a part of a spec.
type UnsupportedError struct {
	Backend string
	What    string // such as "a proxy network"
	Fix     string // how to change the spec or the backend; may be empty
}

// Error returns a message without the fix.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("sandbox %s does not support %s", e.Backend, e.What)
}

// ChangedError reports that a file of a [Tree] cannot be read or does not match
// its size or SHA-256. Nothing was run.
type ChangedError struct {
	Path string // relative to the tree
	Tree string // path of the tree, such as /skill
	Err  error  // error from the system; nil if the content differs
}

// Error returns a message with the tree and the path.
func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("cannot read %s/%s as listed in its manifest: %v", e.Tree, e.Path, e.Err)
	}
	return fmt.Sprintf("%s/%s changed after it was hashed", e.Tree, e.Path)
}

// Unwrap returns Err, which may be nil.
func (e *ChangedError) Unwrap() error { return e.Err }

// StartError reports that a command could not be started, for example because
// the program does not exist in the sandbox.
type StartError struct {
	Program string // as in [Cmd.Args]
	Err     error  // never nil
}

// Error returns a message with the program and Err.
func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Program, e.Err) }

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// Report is the result of probing a backend; see [Backend.Probe].
type Report struct {
	Backend string  `json:"backend"`
	Tier    Tier    `json:"tier"`              // tier on this machine; missing layers lower it
	Version string  `json:"version,omitempty"` // version of the backend's program; may be empty
	Layers  []Layer `json:"layers"`            // sorted by name
}

// Layer is a kind of protection, and whether a backend provides it.
type Layer struct {
	Name     string `json:"name"` // as in [State.Enforced]
	Enforced bool   `json:"enforced"`
	By       string `json:"by,omitempty"`  // the mechanism, or why it is missing
	Fix      string `json:"fix,omitempty"` // how to make the layer available
}

// Missing returns the names of the layers that are not enforced, or nil if all
// are.
func (r *Report) Missing() []string {
	var out []string
	for _, l := range r.Layers {
		if !l.Enforced {
			out = append(out, l.Name)
		}
	}
	return out
}
