package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of rules.
const (
	maxRules     = 1024
	maxRuleBytes = 4096 // of one text
)

// Effects of rules and of decisions about tools.
const (
	Allow = Allowed
	Ask   = Asked // denied until a person says otherwise
	Deny  = Denied
)

// Rule allows, denies or asks about the calls of tools. Its text is
//
//	allow | ask | deny TOOL or TOOL(PATTERN)
//
// TOOL is mcp.SERVER.TOOL, mcp.TOOL, SERVER__TOOL, mcp__SERVER__TOOL,
// mcp__SERVER for all tools of a server, or a tool of the agent itself, as
// Bash; each * in it is any text. PATTERN is compared with the arguments: * is
// any text, git:* is git alone or with more words, domain:example.com is a host
// and what is below it. What else is there has to be the same.
//
// A rule that allows is read narrowly: every text in the arguments has to
// match, a path that climbs (..) matches no *, and a command line with more
// than one command in it matches no git:*. The others are read widely: one text
// is enough, in any case, and each command of a line is looked at. That is no
// boundary for code, which is what a sandbox is for.
type Rule struct {
	Effect  string // Allow, Ask or Deny
	Tool    string
	Pattern string // "" is any arguments

	targets  []target
	argument argument
}

// String is the text of the rule.
func (r Rule) String() string { return strings.TrimSpace(r.Effect + " " + r.spec()) }

func (r Rule) spec() string {
	if r.Pattern == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Pattern + ")"
}

// matches reports whether the rule is about the call.
func (r *Rule) matches(c *ToolCall, t argumentText) bool {
	loose := r.Effect != Allow
	if !slices.ContainsFunc(r.targets, func(t target) bool { return t.matches(c, loose) }) && !r.names(c, loose) {
		return false
	}
	switch {
	case r.Pattern == "":
		return true
	case loose:
		return r.argument.catches(t)
	}
	return r.argument.allows(t)
}

// names reports whether the rule spells the name under which the tool is shown.
func (r *Rule) names(c *ToolCall, loose bool) bool {
	g := parseGlob(r.Tool)
	return c.Name != "" && (g.plain() || loose) && g.matches(c.Name, loose)
}

func (t target) matches(c *ToolCall, loose bool) bool {
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

// Rules decide about calls of tools. The zero value has no rule of its own, and
// only the defaults of [Rules.Decide] hold. Rules are not changed once they are
// made, and safe for concurrent use.
type Rules struct {
	list []Rule
	bad  []Problem
	// Threshold is the level from which a person is asked where no rule says
	// otherwise; Unknown is High.
	Threshold Level
}

// ParseRules reads rules, each text an effect and one or more tools, separated
// by blanks or commas outside parentheses. The problems name the number of the
// text and the byte in it. Rules with a problem deny every call: what cannot be
// read may have been meant to deny.
func ParseRules(texts []string) (Rules, []Problem) {
	var r Rules
	add := func(i, at int, format string, args ...any) {
		if len(r.bad) < maxList {
			r.bad = append(r.bad, Problem{Where: fmt.Sprintf("rule %d, column %d", i+1, at+1), Message: fmt.Sprintf(format, args...)})
		}
	}
	for i, text := range texts {
		if i >= maxRules {
			add(i, 0, "there are more than %d rules", maxRules)
			break
		}
		start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		end := start + strings.IndexFunc(text[start:]+" ", func(r rune) bool { return unicode.IsSpace(r) || r == ':' })
		effect := strings.ToLower(text[start:end])
		if effect != Allow && effect != Ask && effect != Deny {
			add(i, start, "a rule begins with allow, ask or deny, not %.50q", text[start:end])
			continue
		}
		body := end
		if body < len(text) && text[body] == ':' {
			body++ // deny: x
		}
		rules, bad := parseTools(effect, text, body)
		if len(rules) == 0 && len(bad) == 0 {
			bad = []fault{{body, "it names no tool: write " + effect + " mcp.SERVER.TOOL"}}
		}
		for _, f := range bad {
			add(i, f.at, "%s", f.message)
		}
		if len(r.list)+len(rules) > maxRules {
			add(i, 0, "there are more than %d rules", maxRules)
			break
		}
		r.list = append(r.list, rules...)
	}
	return r, slices.Clone(r.bad)
}

// AllowTools makes rules that allow what a skill's allowed-tools names, for
// [Rules.Then]. What cannot be read is left out, and is a problem.
func AllowTools(texts []string) (Rules, []Problem) {
	var r Rules
	var problems []Problem
	for i, text := range texts {
		rules, bad := parseTools(Allow, text, 0)
		if len(r.list)+len(rules) > maxRules {
			return r, append(problems, Problem{fmt.Sprintf("tool %d", i+1), fmt.Sprintf("there are more than %d", maxRules)})
		}
		r.list = append(r.list, rules...)
		for _, f := range bad {
			problems = append(problems, Problem{fmt.Sprintf("tool %d, column %d", i+1, f.at+1), f.message})
		}
	}
	return r, problems
}

// Then returns the rules of r and behind them those of more, which can only
// allow what r says nothing about, but deny anything. The threshold stays.
func (r Rules) Then(more Rules) Rules {
	r.list = slices.Concat(r.list, more.list)
	r.bad = slices.Concat(r.bad, more.bad)
	return r
}

// Denials returns only what denies, which anybody may add, as a project that is
// not trusted. What cannot be read denies still.
func (r Rules) Denials() Rules {
	r.list = slices.DeleteFunc(slices.Clone(r.list), func(r Rule) bool { return r.Effect != Deny })
	return r
}

// List returns the rules in their order. The slice is the caller's.
func (r Rules) List() []Rule { return slices.Clone(r.list) }

// fault is what is wrong at an offset of a text.
type fault struct {
	at      int
	message string
}

// parseTools reads the tools of a text from an offset on.
func parseTools(effect, text string, from int) (rules []Rule, bad []fault) {
	if len(text) > maxRuleBytes {
		return nil, []fault{{0, fmt.Sprintf("it has %d bytes, more than %d", len(text), maxRuleBytes)}}
	}
	if !utf8.ValidString(text) {
		return nil, []fault{{0, "it is not UTF-8"}}
	}
	for at := from; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == ',' || unicode.IsSpace(r) {
			at += size
			continue
		}
		end, open, message := word(text, at)
		if message != "" {
			return rules, append(bad, fault{end, message}) // where the next one begins is not known
		}
		rule, f := newRule(effect, text[at:end], open-at)
		if f != nil {
			bad = append(bad, fault{at + f.at, f.message})
		} else {
			rules = append(rules, rule)
		}
		at = end
	}
	return rules, bad
}

// word finds the end of TOOL(PATTERN), and its first parenthesis, end where
// there is none.
func word(text string, at int) (end, open int, message string) {
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
			return i, 0, "a ) without a ("
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
		return open, 0, "the ( is not closed"
	}
	if open < 0 {
		open = len(text)
	}
	return len(text), open, ""
}

// newRule makes a rule of TOOL(PATTERN), of which the first parenthesis is at
// open.
func newRule(effect, text string, open int) (Rule, *fault) {
	r := Rule{Effect: effect, Tool: text[:open]}
	if i := strings.IndexFunc(r.Tool, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.*/:@$", c)
	}); i >= 0 {
		return r, &fault{i, fmt.Sprintf("%.100q cannot be the name of a tool", r.Tool)}
	}
	if strings.Trim(r.Tool, ".") == "" || r.Tool == "mcp." || r.Tool == "mcp__" {
		return r, &fault{0, "the name of a tool is missing"}
	}
	if open < len(text) {
		if !strings.HasSuffix(text, ")") || closes(text[open:]) != len(text)-open-1 {
			return r, &fault{open, "nothing may follow the )"}
		}
		r.Pattern = strings.TrimSpace(text[open+1 : len(text)-1])
		if i := strings.IndexFunc(r.Pattern, func(c rune) bool { return !unicode.IsPrint(c) && c != '\t' }); i >= 0 {
			return r, &fault{open + 1, "the pattern has characters that do not show"}
		}
		if r.Pattern == "" {
			return r, &fault{open, "the pattern is empty: leave the parentheses out, or write (*)"}
		}
	}
	r.targets = targets(r.Tool)
	r.argument = parseArgument(r.Pattern)
	return r, nil
}

// closes is where the parenthesis that a text begins with is closed, -1 for
// nowhere.
func closes(s string) int {
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

// ToolCall asks whether a tool may be called.
type ToolCall struct {
	Server    string          // "" is the agent itself
	Tool      string          // as its server calls it
	Name      string          // as it is shown to the model, where that is another
	Arguments json.RawMessage // a JSON object, or nothing
	// Subject identifies the tool for grants: its definition and its server; ""
	// where these are not known, and then nothing is granted.
	Subject Digest

	ReadOnly bool  // its server says that it changes nothing
	Own      bool  // its server is in the person's own configuration
	Ask      bool  // its server is marked to be asked about
	Safety   Level // Unknown where nobody set it: then it is not allowed
}

// builtin reports whether the tool is one of the agent's own working folder.
func (c *ToolCall) builtin() bool { return c.Server == "" || c.Server == "workspace" && c.Own }

// Permission is the name by which a rule and the audit log know the tool:
// mcp.SERVER.TOOL, or TOOL for the agent itself.
func (c *ToolCall) Permission() string {
	if c.Server == "" {
		return c.Tool
	}
	return "mcp." + c.Server + "." + c.Tool
}

// Codes of decisions about tools, besides those of [Decision].
const (
	ByRule    Code = "rule"
	ReadOnly  Code = "read-only"
	OwnServer Code = "own-server"
	NotSaid   Code = "unknown-safety"
	AtLevel   Code = "level"
	MarkedAsk Code = "marked"
	MayChange Code = "may-change"
	BadRules  Code = "unreadable-rules"
	NoTool    Code = "unknown-tool"
	Withdrawn Code = "withdrawn" // the leave to use its server ended
	Declined  Code = "declined"  // a person was asked, and said no
)

// ToolDecision answers a [ToolCall].
type ToolDecision struct {
	Effect string // Allow, Ask or Deny
	Code   Code
	Reason string // for people
	Next   string // what a person can do about it
	Rule   *Rule  // that decided, nil for a default
	Grant  *Grant // that allows it, where Code is [Granted]
}

// Allow reports whether the call may be made now.
func (d ToolDecision) Allow() bool { return d.Effect == Allow }

// NeedsPerson reports whether a person can allow it when asked.
func (d ToolDecision) NeedsPerson() bool { return d.Effect == Ask }

// Decide answers a call. A rule that denies counts wherever it is; of the
// others the first that matches. Without one, a person is asked about a tool of
// unknown safety, of a level at or above the threshold, of a server marked so,
// and about a tool that may change something, unless its server is the person's
// own. Rules that could not be read deny. It records nothing.
func (r Rules) Decide(c ToolCall) ToolDecision {
	if len(r.bad) > 0 {
		return ToolDecision{Effect: Deny, Code: BadRules, Reason: "the rules of policy cannot be read: " + visible(r.bad[0].String(), 500),
			Next: "mend the rule; see where it is: loadout config show"}
	}
	var first *Rule
	t := c.texts()
	for i := range r.list {
		rule := &r.list[i]
		if rule.Effect != Deny && first != nil || !rule.matches(&c, t) {
			continue
		}
		if rule.Effect == Deny {
			return byRule(rule, &c)
		}
		first = rule
	}
	if first != nil {
		return byRule(first, &c)
	}
	threshold := r.Threshold
	if threshold == Unknown {
		threshold = High
	}
	name := visible(c.Permission(), 200)
	ask := func(code Code, format string, args ...any) ToolDecision {
		return ToolDecision{Effect: Ask, Code: code, Reason: fmt.Sprintf(format, args...), Next: next(&c)}
	}
	switch {
	case c.Safety <= Unknown || c.Safety > Critical:
		return ask(NotSaid, "how safe %s is was never said", name)
	case c.Safety >= threshold:
		return ask(AtLevel, "%s is %s, and a person is asked from %s on", name, c.Safety, threshold)
	case c.Ask:
		return ask(MarkedAsk, "%s is of a server that a person is asked about", name)
	case c.ReadOnly:
		return ToolDecision{Effect: Allow, Code: ReadOnly, Reason: name + " only reads"}
	case c.Own:
		return ToolDecision{Effect: Allow, Code: OwnServer, Reason: name + " is of a server of the person's own"}
	}
	return ask(MayChange, "%s may change something, and no rule allows it", name)
}

func byRule(r *Rule, c *ToolCall) ToolDecision {
	d := ToolDecision{Effect: r.Effect, Code: ByRule, Rule: r, Reason: "by the rule " + visible(r.String(), 300)}
	if r.Effect != Allow {
		d.Next = "see where the rule is: loadout config show"
	}
	return d
}

// next is the rule that would let a tool be called without asking.
func next(c *ToolCall) string {
	if !plain().MatchString(c.Permission()) {
		return "add a rule that allows it to policy.rules; see: loadout config example"
	}
	return `to be asked no more, add the rule "allow ` + c.Permission() + `" to policy.rules`
}

// DecideWith answers a call by r and behind it the rules of more, as of skills in
// force: those allow only what r says nothing about, and neither what a server is
// marked to be asked about, nor what nobody said the safety of, nor what is CRITICAL.
// Their denials count.
func (r Rules) DecideWith(more Rules, c ToolCall) ToolDecision {
	d := r.Decide(c)
	if len(more.list)+len(more.bad) == 0 || d.Effect == Deny {
		return d
	}
	if d.Code == MarkedAsk || d.Code == NotSaid || c.Safety >= Critical {
		more = more.Denials()
	}
	return r.Then(more).Decide(c)
}

// Record returns what the audit log keeps of the answer to c, and of that a
// person was asked then and approved. Of the arguments there is only a digest,
// as they may hold anything.
func (d ToolDecision) Record(c ToolCall, p Principal, approved bool) Record {
	r := Record{Principal: p, Action: "call", Subject: c.Subject, Name: c.Permission(), Decision: d.Effect, Reason: d.Reason, Details: map[string]string{
		"code": string(d.Code), "safety": c.Safety.String(), "arguments": string(ArgumentsDigest(c.Arguments))}}
	switch {
	case r.Decision == "":
		r.Decision = Denied
	case r.Decision == Asked && approved:
		r.Decision = Allowed
		r.Details["answer"] = "approved"
	}
	if d.Rule != nil {
		r.Details["rule"] = d.Rule.String()
	}
	if d.Grant != nil {
		r.Details["grant"], r.Details["scope"] = d.Grant.ID, string(d.Grant.Scope)
	}
	return r
}
