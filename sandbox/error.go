package sandbox

import (
	"errors"
	"fmt"
)

// ErrDisabled is the cause with which a caller of [Run] cancels its context
// when the permission to run was revoked. The result then has reason
// [Disabled].
var ErrDisabled = errors.New("permission to run was revoked")

// ErrEnded reports that a sandbox ended before an operation finished.
var ErrEnded = errors.New("sandbox has ended")

// UnavailableError reports that a back end cannot be used on this machine.
type UnavailableError struct {
	Backend string
	Missing string // such as "user namespaces" or "bwrap"
	Err     error  // from the system; may be nil
	Fix     string // how to make it available
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("sandbox %s: %s", e.Backend, e.Missing)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// UnsupportedError reports that a back end does not support a part of a spec.
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
	Path string // inside the tree
	Tree string
	Err  error // from the system; nil if the content differs
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

// Report is the result of a probe.
type Report struct {
	Backend string  `json:"backend"`
	Tier    Tier    `json:"tier"` // of this machine, without the missing layers
	Version string  `json:"version,omitempty"`
	Layers  []Layer `json:"layers"`
}

// Layer is one protection that a back end enforces or lacks.
type Layer struct {
	Name     string `json:"name"`
	Enforced bool   `json:"enforced"`
	By       string `json:"by,omitempty"`  // the mechanism, or why there is none
	Fix      string `json:"fix,omitempty"` // how to make it available
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
