package packages

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// MissingToolError is returned if the host has no usable program for installing
// packages. Nothing was run.
type MissingToolError struct {
	Tool  string   // "uv or pip", "npm"
	Needs []string // package names
	Hint  string   // how to install the program
	// Tried lists programs that were found but are not usable.
	Tried []script.Unusable
}

func (e *MissingToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is required to install %s but not installed", e.Tool, formatNames(e.Needs))
	for _, t := range e.Tried[:min(len(e.Tried), 3)] {
		fmt.Fprintf(&b, "; %s cannot be used: %s", t.Path, t.Reason)
	}
	return b.String() + "; " + e.Hint
}

// OfflineError is returned if required packages are not installed and cannot be
// downloaded. The script was not run.
type OfflineError struct {
	Needs  []string // package names
	Source string   // what requires them
	Hosts  []string // registries that could not be reached, with ports; nil if none was tried
	Err    error    // why the installed packages are not usable, or nil
}

func (e *OfflineError) Error() string {
	why := "installation is disabled"
	if len(e.Hosts) > 0 {
		why = strings.Join(e.Hosts, " and ") + " cannot be reached"
	} else if e.Err != nil {
		why = "the installed packages are not usable: " + e.Err.Error()
	}
	return fmt.Sprintf("%s, required by %s, cannot be installed: %s; the script was not run", formatNames(e.Needs), e.Source, why)
}

func (e *OfflineError) Unwrap() error { return e.Err }

// FailedError is returned if an installer failed or if its files were rejected.
type FailedError struct {
	Tool   string   // uv, pip, npm
	Needs  []string // package names
	Reason string   // short reason, for example "exited with code 1"
	Output string   // end of the installer's output, without control characters and passwords in URLs
	Denied []string // blocked hosts, with ports
	Hint   string   // what to do; may be empty
}

func (e *FailedError) Error() string {
	s := fmt.Sprintf("%s could not install %s: %s", e.Tool, formatNames(e.Needs), e.Reason)
	if len(e.Denied) > 0 {
		s += "; blocked connections: " + strings.Join(e.Denied, ", ")
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	if e.Output != "" {
		s += "\n" + e.Output
	}
	return s
}

// ChangedError is returned if files in the cache differ from those that were
// installed.
type ChangedError struct {
	Path   string // relative to the directory of the packages; empty for the directory itself
	Reason string
}

func (e *ChangedError) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + " " + e.Reason
}

// formatNames formats the first few names of a list for a message.
func formatNames(names []string) string {
	const most = 6
	switch {
	case len(names) == 0:
		return "packages"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// printable removes control characters from a program's output.
func printable(s string) string {
	return untrusted.New(s).ForTerminalLines()
}
