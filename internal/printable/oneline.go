package printable

import (
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// OneLine replaces each run of white space and control characters with a space,
// so that the text fits on one line, and drops other characters that are
// disallowed in untrusted text.
func OneLine(s string) string { return untrusted.New(s).ForTerminal() }

// IsLabel reports whether s, such as a name, can be shown unchanged: it is on
// one line and each character is printable.
func IsLabel(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) && untrusted.Inspect(s).Clean()
}
