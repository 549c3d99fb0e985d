package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
)

// Limits on rules.
const (
	maxRules     = 1024
	maxRuleBytes = 4096 // bytes in the text of a rule
)

// rule allows or denies tool calls, or requires approval for them; see
// [ParseRules].
type rule struct {
	effect  string // Allow, Ask or Deny
	tool    string
	pattern string // "" matches any arguments

	targets  []toolTarget
	argument argumentPattern
}

// String returns the text of the rule, as parsed by [ParseRules].
func (r rule) String() string { return strings.TrimSpace(r.effect + " " + r.spec()) }

func (r rule) spec() string {
	if r.pattern == "" {
		return r.tool
	}
	return r.tool + "(" + r.pattern + ")"
}

// matches reports whether the rule applies to the call.
func (r *rule) matches(c *ToolCall, t argumentText) bool {
	loose := r.effect != Allow
	if !slices.ContainsFunc(r.targets, func(t toolTarget) bool { return t.matches(c, loose) }) && !r.matchesName(c, loose) {
		return false
	}
	switch {
	case r.pattern == "":
		return true
	case loose:
		return r.argument.matchesAny(t)
	}
	return r.argument.allows(t)
}

// matchesName reports whether the rule matches the model's name for the tool.
func (r *rule) matchesName(c *ToolCall, loose bool) bool {
	g := parseGlob(r.tool)
	return c.Name != "" && (g.isLiteral() || loose) && g.matches(c.Name, loose)
}

// mayApplyTo reports whether the rule may match a tool of a server, if the tool's
// name contains neither "." nor "__".
func (r *rule) mayApplyTo(server string) bool {
	return mayMatchToolNames(r.tool, server) || slices.ContainsFunc(r.targets, func(t toolTarget) bool {
		if t.own {
			return server == "workspace"
		}
		return t.server.matches(server, true) && !slices.ContainsFunc(t.tool.parts, func(p string) bool {
			return strings.Contains(p, ".") || strings.Contains(p, "__")
		})
	})
}

// mayMatchToolNames reports whether a rule's text may match the model's names
// for a server's tools. These start with the server's name, but characters
// other than ASCII letters and digits may have been replaced, and the end may
// have been cut off.
func mayMatchToolNames(rule, server string) bool {
	const uncut = 8 // bytes of the server's name that are never cut
	start := func(s string) string {
		s = strings.ToLower(s)
		if i := strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }); i >= 0 {
			s = s[:i]
		}
		return s[:min(len(s), uncut)]
	}
	a, b := start(rule), start(server)
	n := min(len(a), len(b))
	return a[:n] == b[:n]
}

func (t toolTarget) matches(c *ToolCall, loose bool) bool {
	if t.loose && !loose {
		return false
	}
	if t.own {
		if c.Server == "" && t.tool.matches(c.Tool, loose) {
			return true
		}
		b, ok := builtins[c.Tool]
		return ok && c.builtin() && t.tool.matches(b.name, loose)
	}
	return c.Server != "" && t.server.matches(c.Server, loose) && t.tool.matches(c.Tool, loose)
}

// Rules decide on tool calls. The zero value has no rules, so only the defaults
// of [Rules.Decide] apply. Methods do not modify the rules, so concurrent use
// is safe.
type Rules struct {
	list []rule
	bad  []Problem
	// Threshold is the lowest safety level at which calls need approval if no
	// rule matches. Unknown means High.
	Threshold Level
}

// ParseRules parses rules of up to 4096 bytes each. They may name up to 1024
// tools in total. A rule has the form
//
//	allow | ask | deny TOOL or TOOL(PATTERN) …
//
// with spaces between tools, or commas outside parentheses. The first word is
// matched regardless of case.
//
// TOOL is mcp.SERVER.TOOL, mcp.TOOL, SERVER__TOOL, mcp__SERVER__TOOL,
// mcp__SERVER for all tools of a server, or a tool of the agent itself, such as
// Bash. Each * in it matches any text. PATTERN is compared with the arguments:
// * matches any text, git:* matches git alone or followed by more words, and
// domain:example.com matches the host and its subdomains. Other text must match
// literally.
//
// An allowing rule is matched strictly: every string in the arguments must
// match, * does not match a path with .., and git:* does not match a command
// line with several commands. Other rules are matched loosely: a single string
// is enough, case is ignored, and each command of a command line is compared.
// Arguments over 1 MiB, or not valid UTF-8 and JSON, match no pattern of an
// allowing rule. They match every pattern of another rule. Rules do not confine
// code; use a sandbox for that.
//
// Problems contain the rule and the column, both counted from 1. ParseRules
// returns at most 256 problems. Rules with a problem deny every call, because
// the unreadable rule might have been meant to deny it.
func ParseRules(texts []string) (Rules, []Problem) {
	var r Rules
	add := func(i, at int, format string, args ...any) {
		if len(r.bad) < maxList {
			r.bad = append(r.bad, Problem{Where: fmt.Sprintf("rule %d, column %d", i+1, at+1), Message: fmt.Sprintf(format, args...)})
		}
	}
	for i, text := range texts {
		if i >= maxRules {
			add(i, 0, "too many rules (limit %d)", maxRules)
			break
		}
		start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		end := start + strings.IndexFunc(text[start:]+" ", func(r rune) bool { return unicode.IsSpace(r) || r == ':' })
		effect := strings.ToLower(text[start:end])
		if effect != Allow && effect != Ask && effect != Deny {
			add(i, start, "unknown effect %.50q: want allow, ask or deny", text[start:end])
			continue
		}
		body := end
		if body < len(text) && text[body] == ':' {
			body++ // "deny: x"
		}
		rules, bad := parseTools(effect, text, body)
		if len(rules) == 0 && len(bad) == 0 {
			bad = []ruleError{{body, "no tool named: write " + effect + " mcp.SERVER.TOOL"}}
		}
		for _, f := range bad {
			add(i, f.at, "%s", f.message)
		}
		if len(r.list)+len(rules) > maxRules {
			add(i, 0, "too many rules (limit %d)", maxRules)
			break
		}
		r.list = append(r.list, rules...)
	}
	return r, slices.Clone(r.bad)
}

// AllowTools returns rules, for [Rules.Append], that allow the tools in a
// skill's allowed-tools, a field of the Agent Skills format. Each text lists
// tools in the form that [ParseRules] describes. Invalid tools, and texts
// beyond a total of 1024 tools, are dropped and reported as problems. These do
// not deny any call.
func AllowTools(texts []string) (Rules, []Problem) {
	var r Rules
	var problems []Problem
	for i, text := range texts {
		rules, bad := parseTools(Allow, text, 0)
		if len(r.list)+len(rules) > maxRules {
			return r, append(problems, Problem{fmt.Sprintf("tool %d", i+1), fmt.Sprintf("too many tools (limit %d)", maxRules)})
		}
		r.list = append(r.list, rules...)
		for _, f := range bad {
			problems = append(problems, Problem{fmt.Sprintf("tool %d, column %d", i+1, f.at+1), f.message})
		}
	}
	return r, problems
}

// Append returns the rules of r followed by those of other. The rules of other
// can allow only calls that r does not decide, but can deny any call. The
// threshold is that of r.
func (r Rules) Append(other Rules) Rules {
	r.list = slices.Concat(r.list, other.list)
	r.bad = slices.Concat(r.bad, other.bad)
	return r
}

// Denials returns the threshold and the deny rules of r. Even an untrusted project
// may add deny rules. Unreadable rules still deny every call.
func (r Rules) Denials() Rules {
	r.list = slices.DeleteFunc(slices.Clone(r.list), func(r rule) bool { return r.effect != Deny })
	return r
}

// DenialsFor returns the threshold of r and its deny rules that may apply to the
// server's tools. It assumes that the names of these tools contain neither "."
// nor "__", because rules for other servers may apply to tools with such names,
// too. Unreadable rules still deny every call.
func (r Rules) DenialsFor(server string) Rules {
	r.list = slices.DeleteFunc(slices.Clone(r.list), func(r rule) bool { return r.effect != Deny || !r.mayApplyTo(server) })
	return r
}

// List returns the text of each valid rule, in order, with one tool per rule.
// [ParseRules] accepts these texts.
func (r Rules) List() []string {
	texts := make([]string, len(r.list))
	for i, rule := range r.list {
		texts[i] = rule.String()
	}
	return texts
}

// ruleError is an error at an offset in the text of a rule.
type ruleError struct {
	at      int
	message string
}

// parseTools parses the tools in a rule's text, beginning at the offset start.
func parseTools(effect, text string, start int) (rules []rule, bad []ruleError) {
	if len(text) > maxRuleBytes {
		return nil, []ruleError{{0, fmt.Sprintf("too long (%d bytes, limit %d)", len(text), maxRuleBytes)}}
	}
	if !utf8.ValidString(text) {
		return nil, []ruleError{{0, "not UTF-8"}}
	}
	for at := start; at < len(text); {
		first, size := utf8.DecodeRuneInString(text[at:])
		if first == ',' || unicode.IsSpace(first) {
			at += size
			continue
		}
		end, open, message := scanTool(text, at)
		if message != "" {
			return rules, append(bad, ruleError{end, message}) // unknown where the next tool starts
		}
		r, f := newRule(effect, text[at:end], open-at)
		if f != nil {
			bad = append(bad, ruleError{at + f.at, f.message})
		} else {
			rules = append(rules, r)
		}
		at = end
	}
	return rules, bad
}

// scanTool returns the end of TOOL(PATTERN) and the position of its opening
// parenthesis, or end if there is none.
func scanTool(text string, at int) (end, open int, message string) {
	open = -1
	depth := 0
	for i, r := range text[at:] {
		i += at
		switch {
		case r == '(':
			if depth++; open < 0 {
				open = i
			}
		case r == ')' && depth == 0:
			return i, 0, "unmatched )"
		case r == ')':
			depth--
		case depth == 0 && (r == ',' || unicode.IsSpace(r)):
			if open < 0 {
				open = i
			}
			return i, open, ""
		}
	}
	if depth > 0 {
		return open, 0, "unmatched ("
	}
	if open < 0 {
		open = len(text)
	}
	return len(text), open, ""
}

// newRule returns a rule for TOOL(PATTERN). open is the offset of its opening
// parenthesis.
func newRule(effect, text string, open int) (rule, *ruleError) {
	r := rule{effect: effect, tool: text[:open]}
	if i := strings.IndexFunc(r.tool, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.*/:@$", c)
	}); i >= 0 {
		return r, &ruleError{i, fmt.Sprintf("invalid tool name %.100q", r.tool)}
	}
	if strings.Trim(r.tool, ".") == "" || r.tool == "mcp." || r.tool == "mcp__" {
		return r, &ruleError{0, "tool name is missing"}
	}
	if open < len(text) {
		if !strings.HasSuffix(text, ")") || closingParen(text[open:]) != len(text)-open-1 {
			return r, &ruleError{open, "unexpected text after )"}
		}
		r.pattern = strings.TrimSpace(text[open+1 : len(text)-1])
		if i := strings.IndexFunc(r.pattern, func(c rune) bool { return !unicode.IsPrint(c) && c != '\t' }); i >= 0 {
			return r, &ruleError{open + 1, "pattern has unprintable characters"}
		}
		if r.pattern == "" {
			return r, &ruleError{open, "empty pattern: omit the parentheses or write (*)"}
		}
	}
	r.targets = parseTargets(r.tool)
	r.argument = parseArgument(r.pattern)
	return r, nil
}

// closingParen returns the index of the parenthesis that closes the first one,
// or -1.
func closingParen(s string) int {
	depth := 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// ToolCall describes a tool call for a policy decision.
type ToolCall struct {
	Server    string          // "" for the agent itself
	Tool      string          // the server's name for the tool
	Name      string          // the model's name for the tool, if different
	Arguments json.RawMessage // a JSON object, or empty
	// Subject identifies the tool in grants. It is a digest of its definition
	// and its server. If it is "", no grant applies.
	Subject Digest

	ReadOnly  bool  // whether the server declares the tool read-only (readOnlyHint of MCP)
	OwnServer bool  // whether the server is in the user's own configuration
	AlwaysAsk bool  // whether the server is configured to need approval
	Safety    Level // Unknown needs approval
}

// builtin reports whether the tool is one of the agent's own tools or works on the
// agent's working directory.
func (c *ToolCall) builtin() bool { return c.Server == "" || c.Server == "workspace" && c.OwnServer }

// Permission returns the name of the tool in rules and the audit log. It is
// mcp.SERVER.TOOL, or TOOL for a tool of the agent itself.
func (c *ToolCall) Permission() string {
	if c.Server == "" {
		return c.Tool
	}
	return "mcp." + c.Server + "." + c.Tool
}

// Decide decides on a call. A denying rule always wins; otherwise the first
// matching rule decides. If no rule matches, a call needs approval if the
// tool's safety is unknown or at least the threshold, or if its server is
// configured to need approval. It also needs approval if the tool may modify
// something and its server is not the user's own. Invalid rules deny every
// call, with the code [invalidRules]. Decide consults no grants and does not
// record the decision.
func (r Rules) Decide(c ToolCall) Decision {
	if len(r.bad) > 0 {
		return Decision{Effect: Deny, Code: invalidRules, Reason: "cannot read the policy rules: " + printable.Text(r.bad[0].String(), 500),
			Hint: "fix the rule"}
	}
	var first *rule
	t := c.argumentTexts()
	for i := range r.list {
		candidate := &r.list[i]
		if candidate.effect != Deny && first != nil || !candidate.matches(&c, t) {
			continue
		}
		if candidate.effect == Deny {
			return decideByRule(candidate, &c)
		}
		first = candidate
	}
	if first != nil {
		return decideByRule(first, &c)
	}
	threshold := r.Threshold
	if threshold == Unknown {
		threshold = High
	}
	name := printable.Text(c.Permission(), 200)
	ask := func(code, format string, args ...any) Decision {
		return Decision{Effect: Ask, Code: code, Reason: fmt.Sprintf(format, args...), Hint: hintFor(&c)}
	}
	switch {
	case c.Safety <= Unknown || c.Safety > Critical:
		return ask(unknownSafety, "the safety of %s is unknown", name)
	case c.Safety >= threshold:
		return ask(aboveThreshold, "%s is rated %s (approval needed from %s)", name, c.Safety, threshold)
	case c.AlwaysAsk:
		return ask(markedToAsk, "calls of %s need approval, because its server is configured so", name)
	case c.ReadOnly:
		return Decision{Effect: Allow, Code: readOnly, Reason: name + " is read-only"}
	case c.OwnServer:
		return Decision{Effect: Allow, Code: ownServer, Reason: name + " belongs to one of your own servers"}
	}
	return ask(mayModify, "%s may modify data, and no rule allows it", name)
}

func decideByRule(r *rule, c *ToolCall) Decision {
	d := Decision{Effect: r.effect, Code: byRule, Rule: r.String(), Reason: "by the rule " + printable.Text(r.String(), 300)}
	if r.effect != Allow {
		d.Hint = "change the rule"
	}
	return d
}

var plainName = lazyregexp.New(`\A[A-Za-z0-9_][A-Za-z0-9._/@-]*\z`)

// hintFor returns a hint on how to allow the tool without approval.
func hintFor(c *ToolCall) string {
	if !plainName.MatchString(c.Permission()) {
		return "to allow it always, add a rule for it to policy.rules"
	}
	return `to allow it always, add the rule "allow ` + c.Permission() + `" to policy.rules`
}
