// Package session records the transcript of a conversation. From the
// transcript, it derives the active skills and the text of their loads for a
// model.
//
// Events are only appended and never changed. All other state is derived from
// them ([State]), so that a conversation continues where its log ends. The
// package stores no skills and fetches them from [Skills]. It executes nothing
// and calls no model.
package session

import (
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/skill"
)

// Event is an event in a conversation. At most one of the pointer fields is
// set. A program must accept events with none set, because later versions may
// add fields. The JSON form is stable.
type Event struct {
	// Seq is the event's sequence number in its log. The first event has number
	// 1, and there are no gaps. [Log.Append] sets it.
	Seq int64 `json:"seq"`
	// Time is when the event happened. If it is zero, [Session.Append] sets it
	// to the current time in UTC.
	Time time.Time `json:"time"`
	// Type names the field that is set, for readers of the JSON form. See
	// [Event.SetType].
	Type string `json:"type"`

	// Start begins a conversation.
	Start *Start `json:"begun,omitempty"`
	// Message is a message of the user or of a model. A user message starts a
	// turn.
	Message *Message `json:"message,omitempty"`
	// Loaded makes a skill active.
	Loaded *SkillLoad `json:"loaded,omitempty"`
	// Unloaded makes a skill inactive.
	Unloaded *SkillUnload `json:"unloaded,omitempty"`
	// Used records the use of an active skill.
	Used *SkillUse `json:"used,omitempty"`
	// CallStarted precedes a tool call. If the process ended before the result
	// was recorded, it is unknown whether the tool ran.
	CallStarted *CallStart `json:"started,omitempty"`
	// Result is the result of a tool call.
	Result *CallResult `json:"result,omitempty"`
	// Notice is a notice from the program to the model.
	Notice *Notice `json:"notice,omitempty"`
	// Updated records that the SKILL.md of an active skill changed.
	Updated *SkillUpdate `json:"updated,omitempty"`
	// Compacted replaces the earlier conversation with a summary.
	Compacted *Compaction `json:"compacted,omitempty"`
	// Branched continues the conversation after an earlier event.
	Branched *Branch `json:"branched,omitempty"`
}

// SetType sets e.Type to the type of the field that is set. If no field is set,
// it does nothing, so that an event of a later version keeps its type.
// [Session.Append] calls SetType, so that only a program that appends to a
// [Log] without a session needs to call it.
func (e *Event) SetType() {
	switch {
	case e.Start != nil:
		e.Type = "begun"
	case e.Message != nil:
		e.Type = "message"
	case e.Loaded != nil:
		e.Type = "skill_loaded"
	case e.Unloaded != nil:
		e.Type = "skill_unloaded"
	case e.Used != nil:
		e.Type = "skill_used"
	case e.CallStarted != nil:
		e.Type = "call_started"
	case e.Result != nil:
		e.Type = "tool_result"
	case e.Notice != nil:
		e.Type = "notice"
	case e.Updated != nil:
		e.Type = "skill_updated"
	case e.Compacted != nil:
		e.Type = "compacted"
	case e.Branched != nil:
		e.Type = "branched"
	}
}

// Start records the start of a conversation.
type Start struct {
	// Instructions is the system prompt of the conversation.
	Instructions string `json:"instructions"`
	// Skills are the names of the skills available at the start.
	Skills []string `json:"skills,omitempty"`
	// Folder is the working directory of the conversation, if any.
	Folder string `json:"folder,omitempty"`
}

// Message is a message of the user or of a model. Only a user's message has
// images, and only a model's message has thinking and tool calls.
type Message struct {
	Role     llm.Role       `json:"role"` // [llm.User] or [llm.Assistant]
	Text     string         `json:"text"`
	Images   []llm.Image    `json:"images,omitempty"` // of a user's message
	Thinking []llm.Thinking `json:"thinking,omitempty"`
	Calls    []llm.Call     `json:"calls,omitempty"`
	Model    string         `json:"model,omitempty"` // model that wrote the message, as "vendor:name"
	Stop     string         `json:"stop,omitempty"`  // why a model's message ended, such as "end"
	Usage    *llm.Usage     `json:"usage,omitempty"` // nil if unknown
}

// CallStart records that a tool call is about to start.
type CallStart struct {
	Call string `json:"call"` // call ID
}

// CallResult records the result of a tool call.
type CallResult struct {
	Call   string      `json:"call"` // call ID
	Text   string      `json:"text"`
	Images []llm.Image `json:"images,omitempty"`
	Error  bool        `json:"error,omitempty"` // whether the call failed
	// Denied is set if policy or the user denied the call.
	Denied bool `json:"denied,omitempty"`
	// Instructions apply from this event on. The model receives them after the
	// results of all calls.
	Instructions string `json:"instructions,omitempty"`
	// Wait is set if the user's next message provides the requested data.
	Wait bool `json:"wait,omitempty"`
}

// Notice is a notice from the program to the model.
type Notice struct {
	Text string `json:"text"`
	// Skills lists the names of the available skills, if the notice is about
	// them.
	Skills []string `json:"skills,omitempty"`
}

// SkillLoad records that a skill became active. It contains the text sent to
// the model, so that a request can be rendered from the log alone.
type SkillLoad struct {
	Skill   ID           `json:"skill"`
	Title   string       `json:"title,omitempty"`   // display name if it differs from the name
	Digest  string       `json:"digest"`            // digest of SKILL.md, as in [Skill]
	Version string       `json:"version,omitempty"` // the skill's own version
	Text    string       `json:"text"`
	Files   []skill.File `json:"files,omitempty"`
	Tokens  int          `json:"tokens"` // estimated number of tokens in the instructions
	// RequiredBy is the name of the skill that needs this one, or "" if this
	// skill was requested.
	RequiredBy string `json:"for,omitempty"`
	// Needs lists the names of the skills that this skill depends on.
	Needs []string `json:"needs,omitempty"`
	// Tools lists the names of the tools that the skill provides.
	Tools []string `json:"tools,omitempty"`
	// Retention is how long the skill stays active.
	Retention RetentionMode `json:"keep,omitempty"`
	// Direct means that the model did not request the load with a tool call.
	// The text becomes part of the conversation at this event.
	Direct bool `json:"direct,omitempty"`
	// AllowedTools are the tool calls that need no approval while the skill is
	// active. Model is the model that the skill requests. Both are set only if
	// the skill was approved when it was loaded.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	Model        string   `json:"model,omitempty"`
	// UnusedTurns is the number of turns since the last use before this event.
	// It is set for skills restored from another program's conversation, and if
	// [Session.Refresh] loaded a new version.
	UnusedTurns int `json:"unused,omitempty"`
	// Description is the skill's own description.
	Description string `json:"description,omitempty"`
	// By is the cause of the load, or "" if unknown. Why is the reason, if it
	// is not apparent from the conversation.
	By  Cause  `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Cause is the user or mechanism that made a skill active.
type Cause string

// Causes of loads.
const (
	ByModel      Cause = "model"
	ByUser       Cause = "person"
	ByPreload    Cause = "preload"    // active from the start
	ByDependency Cause = "dependency" // needed by another skill: see [SkillLoad.RequiredBy]
)

// RetentionMode determines how long a skill stays active.
type RetentionMode string

// Retention modes.
const (
	RetainUsed   RetentionMode = ""       // for a number of turns after its last use
	RetainPinned RetentionMode = "pinned" // until it is unloaded
	RetainOnce   RetentionMode = "once"   // for the current turn, or the next one if the user loaded it
)

// SkillUnload records that a skill became inactive.
type SkillUnload struct {
	Skill  ID     `json:"skill"`
	Reason string `json:"reason"` // for users and models; may be empty
}

// SkillUse records that a skill's file, script or tool was used.
type SkillUse struct {
	Skill ID `json:"skill"`
	// Retention is how long the skill stays active from this event on. It
	// never shortens the current retention, unless Exact is set because the
	// user chose it.
	Retention RetentionMode `json:"keep,omitempty"`
	Exact     bool          `json:"set,omitempty"`
	// Tools lists the names of tools that the skill has provided since this
	// use, for example after an approval.
	Tools []string `json:"tools,omitempty"`
}

// Compaction replaces the earlier conversation with a summary and the
// instructions that remain active.
type Compaction struct {
	Text string `json:"text"`
	// Skills lists the skills whose instructions are part of the text, in load
	// order. All other skills become inactive.
	Skills []ID       `json:"skills,omitempty"`
	Model  string     `json:"model,omitempty"` // model that wrote the summary, as "vendor:name"
	Usage  *llm.Usage `json:"usage,omitempty"`
}

// Branch records that the conversation continues after an earlier event, as if
// the events in between had not happened. They stay in the log, and another
// Branch can return to the last of them. See [Path].
type Branch struct {
	// After is the sequence number of the earlier event, or 0 to start again.
	// A number that does not precede the Branch is ignored.
	After int64 `json:"after"`
}

// SkillUpdate records that the SKILL.md of an active skill changed.
type SkillUpdate struct {
	Skill  ID     `json:"skill"`
	Old    string `json:"old"`    // previous digest
	Digest string `json:"digest"` // current digest
	// UserOnly is set if only the user may load the current version.
	UserOnly bool `json:"user_only,omitempty"`
	// Restored is set if the current digest is that of the loaded text again.
	Restored bool `json:"restored,omitempty"`
}

// ID identifies a skill.
type ID struct {
	Name   string `json:"name"`
	Origin string `json:"origin"` // label of the skill's source
	Dir    string `json:"dir"`    // slash-separated path in the source
}

// Key returns "origin/dir", which identifies the skill even if its name
// changes.
func (id ID) Key() string { return id.Origin + "/" + id.Dir }

// Matches reports whether ref, a reference written by a model, refers to this
// skill. ref may be the skill's key, or its name with or without an origin or a
// version.
func (id ID) Matches(ref string) bool {
	name, _, _ := strings.Cut(ref, "@")
	return name == id.Name || ref == id.Key() || name == id.Origin+"/"+id.Name
}

// clone returns a copy that shares no mutable data with e.
func (e Event) clone() Event {
	if e.Message = clonePointer(e.Message); e.Message != nil {
		e.Message.Images = slices.Clone(e.Message.Images)
		e.Message.Thinking = slices.Clone(e.Message.Thinking)
		e.Message.Calls = slices.Clone(e.Message.Calls)
		e.Message.Usage = clonePointer(e.Message.Usage)
	}
	if e.Result = clonePointer(e.Result); e.Result != nil {
		e.Result.Images = slices.Clone(e.Result.Images) // image bytes are never modified
	}
	if e.Start = clonePointer(e.Start); e.Start != nil {
		e.Start.Skills = slices.Clone(e.Start.Skills)
	}
	e.CallStarted = clonePointer(e.CallStarted)
	if e.Notice = clonePointer(e.Notice); e.Notice != nil {
		e.Notice.Skills = slices.Clone(e.Notice.Skills)
	}
	if e.Compacted = clonePointer(e.Compacted); e.Compacted != nil {
		e.Compacted.Skills = slices.Clone(e.Compacted.Skills)
		e.Compacted.Usage = clonePointer(e.Compacted.Usage)
	}
	e.Branched = clonePointer(e.Branched)
	e.Unloaded = clonePointer(e.Unloaded)
	if e.Used = clonePointer(e.Used); e.Used != nil {
		e.Used.Tools = slices.Clone(e.Used.Tools)
	}
	e.Updated = clonePointer(e.Updated)
	if e.Loaded != nil {
		l := e.Loaded.clone()
		e.Loaded = &l
	}
	return e
}

func (l SkillLoad) clone() SkillLoad {
	l.Files = slices.Clone(l.Files)
	l.Needs = slices.Clone(l.Needs)
	l.Tools = slices.Clone(l.Tools)
	l.AllowedTools = slices.Clone(l.AllowedTools)
	return l
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
