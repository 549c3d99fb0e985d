package policy

// Effects of rules and decisions, also used in audit records.
const (
	Allow = "allow"
	Ask   = "ask" // needs approval; the user's answer is a record of its own
	Deny  = "deny"
)

// Code is the machine-readable reason for a decision. Audit records also
// contain codes that have no constant.
type Code string

// Codes of decisions on the code of skills. The user can resolve [NotApproved],
// [Changed] and [Expired] by approving the skill. A stored grant that allows a
// tool call also has the code [Granted].
const (
	Granted     Code = "granted"      // by Decision.Grant
	NotApproved Code = "not-approved" // no grant
	Changed     Code = "changed"      // other bytes were approved
	Expired     Code = "expired"      // the grant expired
	Unreadable  Code = "unreadable"   // the grants cannot be read
)

// HiddenText is the code of the decision that a model must not get a text of a
// skill, because it has characters that a user does not see. The user can
// resolve it by approving the skill.
const HiddenText Code = "hidden-text"

// Codes of decisions on tool calls.
const (
	ByRule         Code = "rule" // by Decision.Rule
	readOnly       Code = "read-only"
	ownServer      Code = "own-server"
	unknownSafety  Code = "unknown-safety"
	aboveThreshold Code = "level"
	markedToAsk    Code = "marked"
	mayModify      Code = "may-change"
	InvalidRules   Code = "unreadable-rules" // the rules have problems
	UnknownTool    Code = "unknown-tool"     // no such tool
	Declined       Code = "declined"         // the user declined
)

// Decision is the decision whether a skill's code may run or a tool may be
// called. Only the effect [Allow] permits it, so the zero value does not.
type Decision struct {
	Effect string // Allow, Ask or Deny
	Code   Code   // machine-readable reason
	Reason string // for users
	Hint   string // what the user can do about it; may be empty
	Rule   string // text of the rule that matched the call, if any
	Grant  *Grant // the grant that allows it if Code is [Granted]; otherwise nil or a grant that does not
}
