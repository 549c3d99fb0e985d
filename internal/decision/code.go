package decision

import "github.com/loadout-dev/loadout/policy"

// Codes of decisions on the code of skills. The user can resolve [NotApproved],
// [Changed] and [Expired] by approving the skill. A stored grant that allows a
// tool call also has the code [Granted].
const (
	Granted     policy.Code = "granted"      // allowed by Decision.Grant
	NotApproved policy.Code = "not-approved" // no grant
	Changed     policy.Code = "changed"      // the skill has changed since it was approved
	Expired     policy.Code = "expired"      // the grant expired
	Unreadable  policy.Code = "unreadable"   // the grants cannot be read
)

// HiddenText is the code of a denial: a model must not receive a skill's text,
// because the text contains characters that are invisible to the user. The user
// can permit it by approving the skill.
const HiddenText policy.Code = "hidden-text"

// Codes of decisions on tool calls. [policy.Rules.Decide] returns the first two.
const (
	ByRule       policy.Code = "rule"             // decided by Decision.Rule
	InvalidRules policy.Code = "unreadable-rules" // the rules have problems
	UnknownTool  policy.Code = "unknown-tool"     // no such tool
	Declined     policy.Code = "declined"         // the user declined
)
