package scan

import (
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Rule describes a kind of finding.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"` // default; lower if the text warns about an example
	Target   Target   `json:"looks"`
	Message  string   `json:"message"`
	Advice   string   `json:"advice"`

	languages language // languages the rule applies to; 0 means all
	words     []string // lower-case; every match of the pattern contains one of them
	pattern   *lazyregexp.Regexp
	unless    *lazyregexp.Regexp // statements that match are skipped
	also      []string           // lower-case; every match of the pattern also contains one of them
	window    int                // bytes around the statement that the pattern also sees
	vendor    bool               // at most medium for the installer of the tool that the text is about
	bare      bool               // ignore string contents
	flows     bool               // track tainted values (flow.go) if one of the words occurs
	accept    func(match []string) bool
	note      func(s *scanner, match []string, p position) // called for each match instead of adding a finding
}

// Target is the part of a skill that a rule applies to.
type Target string

// Targets of a [Rule].
const (
	Prose       Target = "markdown"    // Markdown outside fenced blocks, and plain text
	Code        Target = "code"        // scripts, fenced blocks, and commands in Markdown
	Text        Target = "text"        // all of the above, and configuration files
	Frontmatter Target = "frontmatter" // the frontmatter, compared with the files
	Server      Target = "server"      // commands of MCP servers
	Name        Target = "name"        // names of files and skills
	Bytes       Target = "bytes"       // binary files and characters
	Skills      Target = "skills"      // a new skill, compared with installed and bundled ones
	Behavior    Target = "behavior"    // what scripts do when they run with decoy secrets
)

// Rules returns all rules, sorted by ID.
func Rules() []Rule {
	out := slices.Clone(rules())
	slices.SortFunc(out, func(a, b Rule) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// rules returns all rules, grouped by subject.
func rules() []Rule {
	return allRules.get(func() []Rule {
		return slices.Concat(proseRules(), sentenceTargets(), shellRules(), codeRules(), secretRules(), flowRules(), characterRules(), fileRules(), serverRules(), frontmatterRules(), behaviorRules(), resemblanceRules())
	})
}

// byID returns all rules, keyed by ID.
func byID() map[string]*Rule {
	return rulesByID.get(func() map[string]*Rule {
		out := map[string]*Rule{}
		for i := range rules() {
			out[rules()[i].ID] = &rules()[i]
		}
		return out
	})
}

// Values that are computed on first use.
var (
	allRules  lazy[[]Rule]
	rulesByID lazy[map[string]*Rule]
	ruleWords lazy[*ruleIndex]
)

// lazy is a value that is computed once. Unlike a [sync.OnceValue] in a package
// variable, it needs no initialization at program start, so the linker can drop
// the code that computes it from programs that do not scan.
type lazy[T any] struct {
	once  sync.Once
	value T
}

// get returns the value. The first call computes it.
func (l *lazy[T]) get(compute func() T) T {
	l.once.Do(func() { l.value = compute() })
	return l.value
}

// language is a bit set of languages.
type language uint

const (
	shell language = 1 << iota
	python
	javascript
	powershell
	otherCode // a language without its own syntax table
	config    // JSON, YAML, TOML and similar formats
	inline    // a command in the prose of a Markdown file, parsed as shell
	plainText
	frontmatter // of a SKILL.md

	anyCode = shell | python | javascript | powershell | otherCode | inline
)

// combine returns each of beginnings concatenated with each of ends.
func combine(beginnings, ends []string) []string {
	var out []string
	for _, b := range beginnings {
		for _, e := range ends {
			out = append(out, b+e)
		}
	}
	return out
}

// ignoreCase compiles a case-insensitive pattern whose dot matches line ends.
func ignoreCase(text string) *lazyregexp.Regexp { return lazyregexp.New(`(?is)` + text) }

// caseSensitive compiles a case-sensitive pattern whose dot matches line ends.
func caseSensitive(text string) *lazyregexp.Regexp { return lazyregexp.New(`(?s)` + text) }
