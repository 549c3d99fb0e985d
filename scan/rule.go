package scan

import (
	"regexp"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// Rule is one thing that a scan looks for.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"` // usual; in an example that warns it is lower
	Looks    Look     `json:"looks"`
	Message  string   `json:"message"`
	Advice   string   `json:"advice"`

	languages language // of code; 0 means all
	words     []string // lower-case; each match of the pattern has one of them
	pattern   func() *regexp.Regexp
	unless    func() *regexp.Regexp // a unit in which this is found is passed over
	bare      bool                  // what strings hold does not count
	flows     bool                  // values are followed where one of the words is (flow.go)
	accept    func(match []string) bool
	note      func(s *scanner, match []string, p place) // what to do with a match, where it is no finding yet
}

// Look is the part of a skill that a rule is about.
type Look string

// The parts.
const (
	Prose       Look = "markdown"    // Markdown outside fenced blocks, and plain text
	Code        Look = "code"        // scripts, fenced blocks, and commands in Markdown
	Text        Look = "text"        // all of these, and configuration
	Frontmatter Look = "frontmatter" // what SKILL.md says of itself, against what is there
	Server      Look = "server"      // commands of MCP servers
	Name        Look = "name"        // names of files and skills
	Bytes       Look = "bytes"       // files that are no text, and characters
)

// Rules returns all rules, sorted by id.
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

// rules is the table.
var rules = sync.OnceValue(func() []Rule {
	return slices.Concat(proseRules(), shellRules(), codeRules(), secretRules(), flowRules(), characterRules(), fileRules(), serverRules(), frontmatterRules())
})

var byID = sync.OnceValue(func() map[string]*Rule {
	out := map[string]*Rule{}
	for i := range rules() {
		out[rules()[i].ID] = &rules()[i]
	}
	return out
})

// language is a set of languages.
type language uint

const (
	shell language = 1 << iota
	python
	javascript
	powershell
	otherCode // of a language without a tokeniser of its own
	config    // JSON, YAML, TOML and the like
	inline    // a command in the text of a Markdown file; read as shell
	plainText

	anyShell = shell | inline | powershell | otherCode
	anyCode  = shell | python | javascript | powershell | otherCode | inline
)

// each joins every beginning with every end.
func each(beginnings, ends []string) []string {
	var out []string
	for _, b := range beginnings {
		for _, e := range ends {
			out = append(out, b+e)
		}
	}
	return out
}

// re is a pattern that ignores case and whose dot takes in line ends.
func re(text string) func() *regexp.Regexp { return pattern.New(`(?is)` + text) }

// exact is a pattern in which case counts.
func exact(text string) func() *regexp.Regexp { return pattern.New(`(?s)` + text) }
