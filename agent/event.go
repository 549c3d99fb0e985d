package agent

import (
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/session"
)

// Type is the kind of an event.
type Type string

// The kinds of events.
const (
	Text          Type = "text"      // more of the answer
	Thinking      Type = "thinking"  // more of what the model thinks
	ToolCall      Type = "tool_call" // a tool is called
	ToolProgress  Type = "tool_progress"
	ToolResult    Type = "tool_result"  // what came of it
	SkillLoaded   Type = "skill_loaded" // a skill came into force
	SkillUnloaded Type = "skill_unloaded"
	Ask           Type = "ask"       // a person is asked
	Notice        Type = "notice"    // something that the person should know
	Compacted     Type = "compacted" // what was said before is told in short from here on
	Usage         Type = "usage"     // what one answer took
	Error         Type = "error"     // why the turn ended before its time
	Done          Type = "done"      // the turn is over
)

// Event is something that happens in a turn. The field that goes with its type is
// set. Its form as JSON is stable: fields are added and never renamed.
type Event struct {
	Type   Type              `json:"type"`
	Text   string            `json:"text,omitempty"`
	Call   *session.Call     `json:"call,omitempty"`
	Result *session.Returned `json:"result,omitempty"`
	Skill  string            `json:"skill,omitempty"`
	Ask    *ask.Ask          `json:"ask,omitempty"`
	Reason string            `json:"reason,omitempty"` // why a skill is unloaded, or a turn is over
	Usage  *session.Usage    `json:"usage,omitempty"`
	Model  string            `json:"model,omitempty"`
	// Session is the ID of the conversation, with the end of a turn.
	Session string `json:"session,omitempty"`
}
