package policy

// Effects of rules and decisions, also used in audit records.
const (
	Allow = "allow"
	Ask   = "ask" // needs approval; the user's answer is a record of its own
	Deny  = "deny"
)

// Codes of [Rules.Decide].
const (
	byRule         = "rule"
	readOnly       = "read-only"
	ownServer      = "own-server"
	unknownSafety  = "unknown-safety"
	aboveThreshold = "level"
	markedToAsk    = "marked"
	mayModify      = "may-change"
	invalidRules   = "unreadable-rules" // the rules have problems
)

// Decision is the decision whether a skill's code may run or a tool may be
// called. Only the effect [Allow] permits it, so the zero value does not.
type Decision struct {
	Effect string // Allow, Ask or Deny
	// Code is the machine-readable reason, such as "granted", "not-approved",
	// "changed" (since it was approved), "expired", "rule", "declined" or
	// "unknown-tool". Codes are never renamed, and more are added.
	Code   string
	Reason string // for users
	Hint   string // what the user can do about it; may be empty
	Rule   string // text of the rule that matched the call, if any
	Grant  *Grant // the grant that allows the operation if Code is "granted"; otherwise nil, or a grant that does not allow it
}
