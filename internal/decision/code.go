package decision

// Codes of decisions on the code of skills. The user can resolve [NotApproved],
// [Changed] and [Expired] by approving the skill. A stored grant that allows a
// tool call also has the code [Granted].
const (
	Granted     = "granted"      // allowed by Decision.Grant
	NotApproved = "not-approved" // no grant
	Changed     = "changed"      // the skill has changed since it was approved
	Expired     = "expired"      // the grant expired
	Unreadable  = "unreadable"   // the grants cannot be read
)

// HiddenText is the code of the decision not to show a skill's text to a model,
// because the text contains characters that are invisible to the user. The user
// can allow it by approving the skill.
const HiddenText = "hidden-text"

// ServedSkill is the code of the decision not to show a skill of an MCP server
// to a model before the user approved it.
const ServedSkill = "served-skill"

// Codes of decisions on tool calls. [policy.Rules.Decide] returns the first two.
const (
	ByRule       = "rule"             // decided by Decision.Rule
	InvalidRules = "unreadable-rules" // the rules have problems
	UnknownTool  = "unknown-tool"     // no such tool
	Declined     = "declined"         // the user declined
)
