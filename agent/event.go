package agent

import (
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/session"
)

// Type determines which fields of an [Event] are set.
type Type string

// Event types.
const (
	Text           Type = "text"      // part of the response
	Thinking       Type = "thinking"  // part of the model's thinking
	ToolCall       Type = "tool_call" // a tool is called
	ToolProgress   Type = "tool_progress"
	ToolResult     Type = "tool_result"  // result of a call
	SkillLoaded    Type = "skill_loaded" // a skill became active
	SkillUnloaded  Type = "skill_unloaded"
	ApprovalNeeded Type = "ask"       // the user is asked for approval
	Notice         Type = "notice"    // information for the user
	Compacted      Type = "compacted" // the history was replaced by a summary
	Usage          Type = "usage"     // tokens used for a response
	Error          Type = "error"     // why the turn failed
	Done           Type = "done"      // the turn is complete
)

// Event is something that happens in a turn. Only the fields for its type are
// set. The JSON form is stable: fields may be added but are never renamed.
type Event struct {
	Type            Type                `json:"type"`
	Text            string              `json:"text,omitempty"`
	Call            *session.Call       `json:"call,omitempty"`
	Result          *session.CallResult `json:"result,omitempty"`
	Skill           string              `json:"skill,omitempty"`
	ApprovalRequest *approval.Request   `json:"ask,omitempty"`
	Reason          string              `json:"reason,omitempty"` // why a skill was unloaded or a turn ended
	Usage           *session.Usage      `json:"usage,omitempty"`
	Model           string              `json:"model,omitempty"`
	// Session is the ID of the conversation. It is set at the end of a turn.
	Session string `json:"session,omitempty"`
}
