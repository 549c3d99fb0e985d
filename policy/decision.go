package policy

// Effects of rules and decisions, also used in audit records.
const (
	Allow = "allow"
	Ask   = "ask" // needs approval; the user's answer is recorded separately
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

// Decision is the decision on whether a skill's code may run or a tool may be
// called. Only the effect [Allow] permits it, so the zero value does not.
type Decision struct {
	Effect string // Allow, Ask or Deny
	// Code is the machine-readable reason. Codes are never renamed, but more
	// may be added. For skills and tools:
	//
	//	granted           allowed by Grant
	//	disabled          disabled in the configuration
	//	declined          the user declined
	//
	// For a skill's code and text:
	//
	//	bundled           allowed because it is part of this program
	//	typed             allowed because the user started this run
	//	not-approved      there is no grant
	//	changed           it changed since it was approved
	//	expired           the grant expired
	//	unreadable        the grants cannot be read
	//	malformed         the principal, digest or request is invalid
	//	hidden-text       text has hidden characters and is not approved
	//
	// For tool calls:
	//
	//	rule              decided by Rule
	//	unreadable-rules  the rules cannot be read
	//	read-only         allowed because the tool only reads
	//	own-server        allowed because the server is the user's own
	//	isolated          allowed because its approved code runs isolated
	//	unknown-safety    the safety of the tool is unknown
	//	level             the safety level of the tool needs approval
	//	marked            the tool is marked as needing approval
	//	may-change        the tool may modify data
	//	unknown-tool      there is no such tool
	//	withdrawn         the lease of the server was revoked
	Code   string
	Reason string // for users
	Hint   string // what the user can do about it; may be empty
	Rule   string // text of the rule that matched the call, if any
	Grant  *Grant // the grant that allows the operation if Code is "granted"; otherwise nil, or a grant that does not allow it
}
