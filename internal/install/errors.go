package install

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/script"
)

// MissingToolError: no program that installs such packages is on this host.
// Nothing was run.
type MissingToolError struct {
	Tool  string   // "uv or pip", "npm"
	Needs []string // names of the packages
	Hint  string   // how to get it
	// Tried are those that were found and cannot be used.
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

// OfflineError: packages are needed that are not installed, and there is no
// network to install them from. The script was not run.
type OfflineError struct {
	Needs  []string // names of the packages
	Source string   // what asks for them
	Hosts  []string // registries that were not reached, with ports; nil where none was tried
	Err    error    // why those that were installed cannot be used; mostly nil
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

// FailedError: the installer ran and failed, or what it left is not accepted.
type FailedError struct {
	Tool   string   // uv, pip, npm
	Needs  []string // names of the packages
	Reason string   // in a few words: "it ended with code 1"
	Output string   // the end of what the installer said, without control characters and addresses' passwords
	Denied []string // hosts that it was refused, with ports
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

// ChangedError: what is in the cache is not what was installed.
type ChangedError struct {
	Path   string // in the directory of the packages; empty for the whole
	Reason string
}

func (e *ChangedError) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + " " + e.Reason
}

// few lists names for a sentence.
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

// printable is text of a program without what terminals obey.
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
