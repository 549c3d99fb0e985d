package sandbox

import (
	"errors"
	"fmt"
)

// ErrDisabled is the cause with which the caller of [Run] cancels its context if
// the permission to run is revoked. The result then has reason [Disabled].
var ErrDisabled = errors.New("permission to run was revoked")

// ErrEnded is returned if a sandbox ended before an operation finished.
var ErrEnded = errors.New("sandbox has ended")

// UnavailableError reports that a backend cannot be used on this machine.
type UnavailableError struct {
	Backend string
	Missing string // such as "user namespaces" or "bwrap"
	Err     error  // error from the system; may be nil
	Fix     string // how to make the backend available
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("sandbox %s: %s", e.Backend, e.Missing)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// UnsupportedError reports that a backend does not support a part of a spec.
type UnsupportedError struct {
	Backend string
	What    string // such as "a proxy network"
	Fix     string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("sandbox %s does not support %s", e.Backend, e.What)
}

// ChangedError reports that a file does not match its manifest. Nothing was
// run.
type ChangedError struct {
	Path string // relative to the tree
	Tree string
	Err  error // error from the system; nil if the content differs
}

func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("cannot read %s/%s as listed in its manifest: %v", e.Tree, e.Path, e.Err)
	}
	return fmt.Sprintf("%s/%s changed after it was hashed", e.Tree, e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }

// StartError reports that a command could not be started.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Program, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Report is the result of probing a backend.
type Report struct {
	Backend string  `json:"backend"`
	Tier    Tier    `json:"tier"` // tier on this machine; missing layers lower it
	Version string  `json:"version,omitempty"`
	Layers  []Layer `json:"layers"`
}

// Layer is a protection that a backend enforces or lacks.
type Layer struct {
	Name     string `json:"name"`
	Enforced bool   `json:"enforced"`
	By       string `json:"by,omitempty"`  // the mechanism, or why it is missing
	Fix      string `json:"fix,omitempty"` // how to make the layer available
}

// Missing returns the names of the layers that are not enforced.
func (r *Report) Missing() []string {
	var out []string
	for _, l := range r.Layers {
		if !l.Enforced {
			out = append(out, l.Name)
		}
	}
	return out
}
