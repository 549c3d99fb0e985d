// Package usage counts what skills, tools and models are used for: a local log, one
// line a use, and the report that is read from it.
//
// A line says when, by which face of the program, which skill, tool, script or
// model, how long, how many tokens, and how it ended. It never holds what was said,
// arguments, results, prompts or secrets, nor a name that only a model made up.
// Nothing is sent anywhere. Writing never fails a call: what cannot be written is
// not counted.
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

// The faces of the program.
const (
	FaceMCP  = "mcp"
	FaceChat = "chat"
	FaceRun  = "run"
)

// Kind is what was done.
type Kind string

// The kinds of uses.
const (
	KindLoad   Kind = "load"   // the instructions of a skill were delivered
	KindFile   Kind = "file"   // a file of a skill was
	KindScript Kind = "script" // a script of a skill was run
	KindCall   Kind = "call"   // a tool of an MCP server was called
	KindModel  Kind = "model"  // a model answered
)

// Outcome is how a use ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Refused Outcome = "refused" // by policy or by a person; nothing was done
)

// Use is one use. Skill and Key name a skill that there is, else they are empty.
type Use struct {
	Time    time.Time     `json:"time"` // Note sets it where it is zero
	Face    string        `json:"face"` // mcp, chat or run
	Kind    Kind          `json:"kind"`
	Skill   string        `json:"skill,omitempty"`
	Key     string        `json:"key,omitempty"`    // which of the skills of that name
	Tool    string        `json:"tool,omitempty"`   // a tool by its name here, or a script by its path in the skill
	Model   string        `json:"model,omitempty"`  // as vendor:name
	Tokens  int           `json:"tokens,omitempty"` // delivered, estimated
	Usage   *llm.Usage    `json:"usage,omitempty"`  // of a model's answer
	Took    time.Duration `json:"-"`                // 0 is not known
	Outcome Outcome       `json:"outcome"`
}

// line is a use as the log has it.
type line struct {
	Use
	Millis float64 `json:"ms,omitempty"`
}

// Limits of a line, in bytes. The append of one page or less is one piece.
const (
	maxLine = 4096
	maxName = 256
	maxKey  = 512
)

var (
	errLong    = errors.New("the line is too long")
	errDamaged = errors.New("the line is damaged")
)

// encode is the line of a use, with its end.
func (u Use) encode() ([]byte, error) {
	u.Skill, u.Tool, u.Model = short(u.Skill, maxName), short(u.Tool, maxName), short(u.Model, maxName)
	u.Key, u.Face = short(u.Key, maxKey), short(u.Face, maxName)
	b, err := json.Marshal(line{u, math.Round(float64(u.Took)/float64(time.Microsecond)) / 1000})
	if err != nil {
		return nil, err
	}
	if len(b)+1 > maxLine {
		return nil, errLong
	}
	return append(b, '\n'), nil
}

func (k Kind) known() bool {
	switch k {
	case KindLoad, KindFile, KindScript, KindCall, KindModel:
		return true
	}
	return false
}

func (o Outcome) known() bool { return o == OK || o == Failed || o == Refused }

// short cuts a name to at most n bytes, as whole characters.
func short(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
