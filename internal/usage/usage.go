// Package usage records the use of skills, tools and models in a local log, one
// use per line, and creates reports.
//
// A line contains the time, the interface of the program, the skill, tool,
// script or model, the duration, the tokens and the outcome. It never contains
// messages, arguments, results, prompts, secrets, or names that a model
// invented. Nothing is sent over a network. If a line cannot be written, the
// use is not recorded, but the call does not fail.
package usage

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/llm"
)

// Interfaces of the program through which skills and tools are used.
const (
	InterfaceMCP  = "mcp"
	InterfaceChat = "chat"
	InterfaceRun  = "run"
)

// Kind is the kind of a recorded use, such as a skill load or a tool call.
type Kind string

// Kinds of uses.
const (
	KindLoad   Kind = "load"   // a skill's instructions were delivered
	KindFile   Kind = "file"   // a skill's file was delivered
	KindScript Kind = "script" // a skill's script was run
	KindCall   Kind = "call"   // an MCP server's tool was called
	KindModel  Kind = "model"  // a model completed a response
)

// Outcome is the outcome of a recorded use.
type Outcome string

// Outcomes of a use.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Refused Outcome = "refused" // refused by policy or by the user; nothing was run
)

// NewOutcome returns the outcome of a use that was refused, failed, or neither.
func NewOutcome(refused, failed bool) Outcome {
	switch {
	case refused:
		return Refused
	case failed:
		return Failed
	}
	return OK
}

// Use records one use of a skill, a tool or a model. If Skill and Key are not
// empty, they identify an existing skill.
type Use struct {
	Time      time.Time     `json:"time"` // time of the use; [Log.Note] sets it if it is zero
	Interface string        `json:"face"` // mcp, chat or run
	Kind      Kind          `json:"kind"`
	Skill     string        `json:"skill,omitempty"`
	Key       string        `json:"key,omitempty"`    // distinguishes skills with the same name
	Tool      string        `json:"tool,omitempty"`   // local name of a tool, or path of a script within the skill
	Model     string        `json:"model,omitempty"`  // vendor:name
	Tokens    int           `json:"tokens,omitempty"` // estimated number of delivered tokens
	Usage     *llm.Usage    `json:"usage,omitempty"`  // token usage of a model response
	Took      time.Duration `json:"-"`                // 0 means unknown
	Outcome   Outcome       `json:"outcome"`
}

// logLine is the JSON form of a use in the log.
type logLine struct {
	Use
	Millis float64 `json:"ms,omitempty"`
}

// Limits of a line in bytes. Appending up to one page is atomic.
const (
	maxLine = 4096
	maxName = 256
	maxKey  = 512
)

var (
	errLong    = errors.New("line too long")
	errDamaged = errors.New("damaged line")
)

// encode encodes a use as a line of the log, including its newline.
func (u Use) encode() ([]byte, error) {
	u.Skill, u.Tool, u.Model = truncate(u.Skill, maxName), truncate(u.Tool, maxName), truncate(u.Model, maxName)
	u.Key, u.Interface = truncate(u.Key, maxKey), truncate(u.Interface, maxName)
	b, err := json.Marshal(logLine{u, math.Round(float64(u.Took)/float64(time.Microsecond)) / 1000})
	if err != nil {
		return nil, err
	}
	if len(b)+1 > maxLine {
		return nil, errLong
	}
	return append(b, '\n'), nil
}

func (k Kind) isKnown() bool {
	switch k {
	case KindLoad, KindFile, KindScript, KindCall, KindModel:
		return true
	}
	return false
}

func (o Outcome) isKnown() bool { return o == OK || o == Failed || o == Refused }

// truncate cuts s to at most n bytes at a rune boundary.
func truncate(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
