package packages

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/script"
)

// MissingToolError reports that the host has no usable program to install the
// packages. Nothing was run.
type MissingToolError struct {
	Tool  string   // "uv or pip", "npm"
	Needs []string // names of the packages
	Hint  string   // how to install the program
	// Tried holds programs that were found but cannot be used.
	Tried []script.Unusable
}

func (e *MissingToolError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is needed to install %s and is missing", e.Tool, few(e.Needs))
	for _, t := range e.Tried[:min(len(e.Tried), 3)] {
		fmt.Fprintf(&b, "; %s cannot be used: %s", t.Path, t.Reason)
	}
	return b.String() + "; " + e.Hint
}

// OfflineError reports that required packages are not installed and cannot be
// downloaded. The script was not run.
type OfflineError struct {
	Needs  []string // names of the packages
	Source string   // what requires them
	Hosts  []string // registries that were not reached, with ports; nil if none was tried
	Err    error    // why the installed packages cannot be used; usually nil
}

func (e *OfflineError) Error() string {
	why := "installing is switched off"
	if len(e.Hosts) > 0 {
		why = strings.Join(e.Hosts, " and ") + " cannot be reached"
	} else if e.Err != nil {
		why = "what was installed cannot be used: " + e.Err.Error()
	}
	return fmt.Sprintf("%s, needed by %s, cannot be had: %s; nothing was run", few(e.Needs), e.Source, why)
}

func (e *OfflineError) Unwrap() error { return e.Err }

// FailedError reports that an installer failed or that its files were rejected.
type FailedError struct {
	Tool   string   // uv, pip, npm
	Needs  []string // names of the packages
	Reason string   // a short reason: "it ended with code 1"
	Output string   // the end of the installer's output, without control characters and passwords in URLs
	Denied []string // hosts that were blocked, with ports
	Hint   string   // what to do; may be empty
}

func (e *FailedError) Error() string {
	s := fmt.Sprintf("%s could not install %s: %s", e.Tool, few(e.Needs), e.Reason)
	if len(e.Denied) > 0 {
		s += "; it was refused " + strings.Join(e.Denied, ", ")
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	if e.Output != "" {
		s += "\n" + e.Output
	}
	return s
}

// ChangedError reports that the cache does not contain what was installed.
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

// few lists names for a message.
func few(names []string) string {
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
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
