package sandbox

import (
	"errors"
	"fmt"
)

// ErrDisabled is the cause with which a caller of [Run] cancels its context
// when leave to run has been withdrawn: the result then has reason disabled.
var ErrDisabled = errors.New("leave to run was withdrawn")

// ErrEnded says that a sandbox has ended before what was asked of it.
var ErrEnded = errors.New("the sandbox has ended")

// UnavailableError says that a back end cannot be used here.
type UnavailableError struct {
	Backend string
	Missing string // what is missing: "user namespaces", "bwrap", …
	Err     error  // what the system said; may be nil
	Fix     string // how to get it
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("sandbox %s: %s", e.Backend, e.Missing)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// UnsupportedError says that a back end cannot do what a spec asks for.
type UnsupportedError struct {
	Backend string
	What    string // "a network by proxy", …
	Fix     string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("sandbox %s cannot give %s", e.Backend, e.What)
}

// ChangedError says that a file is not the one that its manifest names, so
// that nothing was run.
type ChangedError struct {
	Path string // inside the tree
	Tree string
	Err  error // what the system said; nil where the bytes differ
}

func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s/%s cannot be read as its manifest names it: %v", e.Tree, e.Path, e.Err)
	}
	return fmt.Sprintf("%s/%s changed after it was hashed", e.Tree, e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }

// StartError says that a command could not be started.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Program, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Report is what a probe found.
type Report struct {
	Backend string  `json:"backend"`
	Tier    Tier    `json:"tier"` // what this machine really gives
	Version string  `json:"version,omitempty"`
	Layers  []Layer `json:"layers"`
}

// Layer is one thing that a back end enforces, or would.
type Layer struct {
	Name     string `json:"name"`
	Enforced bool   `json:"enforced"`
	By       string `json:"by,omitempty"`  // the mechanism, or why there is none
	Fix      string `json:"fix,omitempty"` // how to get it where it is missing
}

// Missing names the layers that are not enforced.
func (r *Report) Missing() []string {
	var out []string
	for _, l := range r.Layers {
		if !l.Enforced {
			out = append(out, l.Name)
		}
	}
	return out
}
