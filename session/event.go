// Package session is the transcript of one conversation and what it implies:
// which skills are in force, and what their loads look like to a model.
//
// An [Event] is appended and never changed; everything else is a fold over
// the events ([State]), so that a conversation goes on where its log ends.
// The package keeps no skills itself: it asks [Skills] for them. It runs
// nothing and talks to no model.
package session

import (
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// Type is the kind of an event.
type Type string

// The kinds of events.
const (
	// TypeBegun says what a model is told before all else, for the whole conversation.
	TypeBegun Type = "begun"
	// TypeMessage is text of a person or a model; a person's begins a turn.
	TypeMessage Type = "message"
	// TypeLoaded brings a skill into force.
	TypeLoaded Type = "skill_loaded"
	// TypeUnloaded takes a skill out of force.
	TypeUnloaded Type = "skill_unloaded"
	// TypeUsed says that a skill in force was used.
	TypeUsed Type = "skill_used"
	// TypeStarted says that a tool is about to be called. Where no result follows, as
	// the process ended, it is not known whether the tool ran.
	TypeStarted Type = "call_started"
	// TypeResult is what came of a call.
	TypeResult Type = "tool_result"
	// TypeNotice is what the program tells the model from there on.
	TypeNotice Type = "notice"
	// TypeCompacted puts a short text in the place of all that was said before.
	TypeCompacted Type = "compacted"
	// TypeUpdated says that the instructions of a skill in force are no
	// longer those that were loaded.
	TypeUpdated Type = "skill_updated"
)

// Role says whose message it is.
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Event is one step of a conversation. Exactly the field that its type names
// is set.
type Event struct {
	Seq  int64     `json:"seq"` // from 1, without gaps; set by the log
	Time time.Time `json:"time"`
	Type Type      `json:"type"`

	Begun    *Begun    `json:"begun,omitempty"`
	Message  *Message  `json:"message,omitempty"`
	Loaded   *Loaded   `json:"loaded,omitempty"`
	Unloaded *Unloaded `json:"unloaded,omitempty"`
	Used     *Used     `json:"used,omitempty"`
	Started  *Started  `json:"started,omitempty"`
	Result   *Returned `json:"result,omitempty"`
	Notice   *Notice   `json:"notice,omitempty"`
	Updated  *Updated  `json:"updated,omitempty"`

	Compacted *Compacted `json:"compacted,omitempty"`
}

// Begun is what a model is told first.
type Begun struct {
	Instructions string `json:"instructions"`
	// Skills are the names of those that could be loaded then.
	Skills []string `json:"skills,omitempty"`
	// Folder is the one that the conversation is about, where there is one.
	Folder string `json:"folder,omitempty"`
}

// Message is what was said: by a person text, by a model also what it thought, and
// the tools that it wants to be called.
type Message struct {
	Role     Role       `json:"role"`
	Text     string     `json:"text"`
	Thinking []Thinking `json:"thinking,omitempty"`
	Calls    []Call     `json:"calls,omitempty"`
	Model    string     `json:"model,omitempty"` // that said it, as "vendor:name"
	Stop     string     `json:"stop,omitempty"`  // why it ended there
	Usage    *Usage     `json:"usage,omitempty"`
}

// Thinking is what a model thought, in the form in which its vendor wants it back.
type Thinking struct {
	Vendor    string `json:"vendor"`
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// Call is a tool that a model wants to be called.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it
}

// Usage is what a message of a model took, in tokens.
type Usage struct {
	Input      int `json:"input"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
}

// Started is a call that is about to be made.
type Started struct {
	Call string `json:"call"` // its ID
}

// Returned is what a call came to.
type Returned struct {
	Call   string  `json:"call"` // its ID
	Text   string  `json:"text"`
	Images []Image `json:"images,omitempty"`
	Error  bool    `json:"error,omitempty"`
	// Denied says that the call was not made, as policy or a person did not let it.
	Denied bool `json:"denied,omitempty"`
	// Instructions are what holds from then on; they are told behind the results of
	// all calls.
	Instructions string `json:"instructions,omitempty"`
	// Wait says that what is wanted comes with the next message of the person.
	Wait bool `json:"wait,omitempty"`
}

// Image is a picture that a tool returned.
type Image struct {
	MIMEType string `json:"mime_type"`
	Data     []byte `json:"data"`
}

// Notice is what a program tells a model.
type Notice struct {
	Text string `json:"text"`
	// Skills are the names of those that could be loaded then, where it is about that.
	Skills []string `json:"skills,omitempty"`
}

// Loaded is a skill that came into force, with the text as it was delivered,
// so that a request can be rendered from the log alone.
type Loaded struct {
	Skill   ID           `json:"skill"`
	Title   string       `json:"title,omitempty"`   // what people call it, where that is not its name
	Digest  string       `json:"digest"`            // of SKILL.md
	Version string       `json:"version,omitempty"` // that the skill states
	Text    string       `json:"text"`
	Files   []skill.File `json:"files,omitempty"`
	Tokens  int          `json:"tokens"`
	// For names the skill that needed this one, "" where it was asked for.
	For string `json:"for,omitempty"`
	// Needs are the names of the skills it needs.
	Needs []string `json:"needs,omitempty"`
	// Tools are the names of the tools that it brought.
	Tools []string `json:"tools,omitempty"`
	// Keep is for how long it stays in force.
	Keep Keep `json:"keep,omitempty"`
	// Direct says that no call of the model loaded it, so that its text is told
	// where this event is.
	Direct bool `json:"direct,omitempty"`
	// AllowedTools are the calls that it wants to be made unasked, and Model is the
	// model that it wants, where it was approved when it was loaded.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	Model        string   `json:"model,omitempty"`
	// Unused is for how many turns it was not used before, where it was restored from a
	// conversation that another program kept.
	Unused int `json:"unused,omitempty"`
	// Description is what it said that it is for.
	Description string `json:"description,omitempty"`
	// By is who brought it into force, "" where that is not known, and Why is the reason
	// where it is none of the conversation.
	By  Cause  `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Cause is who brought a skill into force.
type Cause string

// Who brings skills into force.
const (
	ByModel      Cause = "model"
	ByPerson     Cause = "person"
	ByPreload    Cause = "preload"    // it is in force from the start
	ByDependency Cause = "dependency" // another one needs it: see [Loaded.For]
)

// Keep is for how long a skill stays in force.
type Keep string

// For how long skills stay in force.
const (
	KeepUsed   Keep = ""       // for some turns after its last use
	KeepPinned Keep = "pinned" // until it is unloaded
	KeepOnce   Keep = "once"   // for the turn in which it was loaded, or the one after a load by hand
)

// Unloaded is a skill that went out of force.
type Unloaded struct {
	Skill  ID     `json:"skill"`
	Reason string `json:"reason"`
}

// Used is a skill that was used: a file, a script or a tool of it.
type Used struct {
	Skill ID `json:"skill"`
	// Keep is for how long it stays from here on, and no less than before, but where Set
	// says that a person wants it so.
	Keep Keep `json:"keep,omitempty"`
	Set  bool `json:"set,omitempty"`
}

// Compacted is what is told in place of all that was said before it: what it came
// to, and the instructions that are still in force.
type Compacted struct {
	Text string `json:"text"`
	// Skills are those whose instructions are part of the text, in the order of
	// loading; what else was in force is not any more.
	Skills []ID   `json:"skills,omitempty"`
	Model  string `json:"model,omitempty"` // that said what it came to, as "vendor:name"
	Usage  *Usage `json:"usage,omitempty"`
}

// Updated is a skill whose SKILL.md changed while it is in force.
type Updated struct {
	Skill  ID     `json:"skill"`
	Old    string `json:"old"`
	Digest string `json:"digest"`
}

// ID is the identity of a skill in a session.
type ID struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	Dir    string `json:"dir"`
}

// Key is the identity as one text.
func (id ID) Key() string { return id.Origin + "/" + id.Dir }

// Answers reports whether a reference, as a model gives it, is of this skill: by its
// name, with a version or an origin or without.
func (id ID) Answers(ref string) bool {
	name, _, _ := strings.Cut(ref, "@")
	return name == id.Name || ref == id.Key() || name == id.Origin+"/"+id.Name
}

// clone returns a copy that shares nothing that can be changed.
func (e Event) clone() Event {
	if e.Message = copied(e.Message); e.Message != nil {
		e.Message.Thinking = slices.Clone(e.Message.Thinking)
		e.Message.Calls = slices.Clone(e.Message.Calls)
		e.Message.Usage = copied(e.Message.Usage)
	}
	if e.Result = copied(e.Result); e.Result != nil {
		e.Result.Images = slices.Clone(e.Result.Images) // their bytes are never changed
	}
	if e.Begun = copied(e.Begun); e.Begun != nil {
		e.Begun.Skills = slices.Clone(e.Begun.Skills)
	}
	e.Started = copied(e.Started)
	if e.Notice = copied(e.Notice); e.Notice != nil {
		e.Notice.Skills = slices.Clone(e.Notice.Skills)
	}
	if e.Compacted = copied(e.Compacted); e.Compacted != nil {
		e.Compacted.Skills = slices.Clone(e.Compacted.Skills)
		e.Compacted.Usage = copied(e.Compacted.Usage)
	}
	e.Unloaded = copied(e.Unloaded)
	e.Used = copied(e.Used)
	e.Updated = copied(e.Updated)
	if e.Loaded != nil {
		l := e.Loaded.clone()
		e.Loaded = &l
	}
	return e
}

// Called is what people call the skill: its display name, or its name.
func (l Loaded) Called() string {
	if l.Title != "" {
		return l.Title
	}
	return l.Skill.Name
}

func (l Loaded) clone() Loaded {
	l.Files = slices.Clone(l.Files)
	l.Needs = slices.Clone(l.Needs)
	l.Tools = slices.Clone(l.Tools)
	l.AllowedTools = slices.Clone(l.AllowedTools)
	return l
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
