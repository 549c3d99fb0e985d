package agent

import (
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Type is the type of an [Event]. It determines which fields of the event are
// set.
type Type string

// Event types, with the fields that they set.
const (
	Text           Type = "text"           // Text: next part of the response
	Thinking       Type = "thinking"       // Text: next part of the model's thinking
	ToolCall       Type = "tool_call"      // Call: a tool is called
	ToolProgress   Type = "tool_progress"  // Call, Text: progress of a call
	ToolResult     Type = "tool_result"    // Call, Result: a call has ended
	SkillLoaded    Type = "skill_loaded"   // Skill: a skill became active
	SkillUnloaded  Type = "skill_unloaded" // Skill, Reason: a skill became inactive
	SkillUpdated   Type = "skill_updated"  // Skill, Restored: an active skill changed; see [session.Session.Refresh]
	ApprovalNeeded Type = "ask"            // ApprovalRequest: the user is asked for approval
	Notice         Type = "notice"         // Text: information for the user
	Compacted      Type = "compacted"      // Text, Usage, Model: the summary that replaced the history
	Usage          Type = "usage"          // Usage, Model: tokens used for a response
	Error          Type = "error"          // Text, Session: why the turn failed
	Done           Type = "done"           // Reason, Session: the turn is complete
)

// Event is something that happens in a turn. Only the fields for its type are
// set. The caller must not modify what they point to. The JSON form is stable:
// fields may be added but are never renamed.
type Event struct {
	Type            Type                `json:"type"`
	Text            string              `json:"text,omitempty"`
	Call            *llm.Call           `json:"call,omitempty"`
	Result          *session.CallResult `json:"result,omitempty"`
	Skill           string              `json:"skill,omitempty"` // name of the skill
	ApprovalRequest *approval.Request   `json:"ask,omitempty"`
	Reason          string              `json:"reason,omitempty"`   // why a skill was unloaded; for [Done], an [llm.Stop] or "wait"
	Restored        bool                `json:"restored,omitempty"` // whether a skill changed back to the version that was loaded
	Usage           *llm.Usage          `json:"usage,omitempty"`
	Model           string              `json:"model,omitempty"` // name of the [llm.Model]
	// Session is the ID of the conversation. It is set at the end of a turn.
	Session string `json:"session,omitempty"`
}
