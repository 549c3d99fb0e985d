// Package usage counts the use of skills, tools and models in a local log with one line
// per use, and reads reports from it.
//
// A line records the time, the interface of the program, the skill, tool, script or model,
// the duration, the tokens and the outcome. It never contains messages, arguments,
// results, prompts or secrets, nor names that a model invented. Nothing is sent anywhere.
// A failed write never fails a call: the use is just not counted.
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

// Interfaces of the program.
const (
	FaceMCP  = "mcp"
	FaceChat = "chat"
	FaceRun  = "run"
)

// Kind is the kind of a use.
type Kind string

// Kinds of uses.
const (
	KindLoad   Kind = "load"   // the instructions of a skill were delivered
	KindFile   Kind = "file"   // a file of a skill was delivered
	KindScript Kind = "script" // a script of a skill was run
	KindCall   Kind = "call"   // a tool of an MCP server was called
	KindModel  Kind = "model"  // a model answered
)

// Outcome is the result of a use.
type Outcome string

// Outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Refused Outcome = "refused" // by policy or by the user; nothing was done
)

// Use is one use. Skill and Key name an existing skill, or are empty.
type Use struct {
	Time      time.Time     `json:"time"` // set by Note if zero
	Interface string        `json:"face"` // mcp, chat or run
	Kind      Kind          `json:"kind"`
	Skill     string        `json:"skill,omitempty"`
	Key       string        `json:"key,omitempty"`    // distinguishes skills with the same name
	Tool      string        `json:"tool,omitempty"`   // local name of a tool, or path of a script in its skill
	Model     string        `json:"model,omitempty"`  // as vendor:name
	Tokens    int           `json:"tokens,omitempty"` // delivered, estimated
	Usage     *llm.Usage    `json:"usage,omitempty"`  // of a model answer
	Took      time.Duration `json:"-"`                // 0 means unknown
	Outcome   Outcome       `json:"outcome"`
}

// logLine is the log form of a use.
type logLine struct {
	Use
	Millis float64 `json:"ms,omitempty"`
}

// Limits of a line, in bytes. An append of at most one page is atomic.
const (
	maxLine = 4096
	maxName = 256
	maxKey  = 512
)

var (
	errLong    = errors.New("line too long")
	errDamaged = errors.New("damaged line")
)

// encode returns the log line of a use, including the newline.
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

func (k Kind) known() bool {
	switch k {
	case KindLoad, KindFile, KindScript, KindCall, KindModel:
		return true
	}
	return false
}

func (o Outcome) known() bool { return o == OK || o == Failed || o == Refused }

// truncate truncates a name to at most n bytes at a rune boundary.
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
