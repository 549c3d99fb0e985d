package mcpserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/tools"
)

// approvals asks a person about calls through the client, and knows the answer
// again: the state that the client sends back is signed, for one tool with one
// set of arguments and a short time, so that nothing is kept here meanwhile.
type approvals struct {
	key [32]byte

	mu     sync.Mutex
	always map[string]bool      // subjects that are not asked about again in this process
	used   map[string]time.Time // answers that counted, until they expire
}

func newApprovals() *approvals {
	a := &approvals{always: map[string]bool{}, used: map[string]time.Time{}}
	rand.Read(a.key[:]) // never fails
	return a
}

// question is the name of ours among the questions of a result.
const question = "loadout/approve"

// answerTime is how long a question may wait for its answer.
const answerTime = 15 * time.Minute

type verdict int

const (
	notAsked verdict = iota
	approved
	denied
)

// state is what travels with a question.
type state struct {
	Expires  int64  `json:"exp"`
	Nonce    string `json:"n"`
	Approved bool   `json:"ok,omitempty"`
	Inner    string `json:"inner,omitempty"` // the server's own state
	MAC      []byte `json:"mac"`
}

func (a *approvals) sign(tool string, args json.RawMessage, st *state) []byte {
	m := hmac.New(sha256.New, a.key[:])
	args = compact(args)
	fmt.Fprintf(m, "%d %q %t %d %d %d ", st.Expires, st.Nonce, st.Approved, len(st.Inner), len(tool), len(args))
	m.Write([]byte(st.Inner + tool))
	m.Write(args)
	return m.Sum(nil)
}

// compact is JSON without the blanks that a client may have changed.
func compact(args json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return args
	}
	return b.Bytes()
}

const stateMark = "loadout:"

func (a *approvals) encode(tool string, args json.RawMessage, st *state) string {
	st.Expires, st.Nonce = time.Now().Add(answerTime).Unix(), rand.Text()
	st.MAC = a.sign(tool, args, st)
	b, err := json.Marshal(st)
	if err != nil {
		panic(err) // it is data
	}
	return stateMark + base64.RawURLEncoding.EncodeToString(b)
}

// decode returns the state of a question of ours about the call, nil if it is
// none.
func (a *approvals) decode(tool string, args json.RawMessage, text string) *state {
	rest, ok := strings.CutPrefix(text, stateMark)
	if !ok {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	var st state
	if err != nil || json.Unmarshal(b, &st) != nil {
		return nil
	}
	if !hmac.Equal(st.MAC, a.sign(tool, args, &st)) || time.Now().Unix() > st.Expires {
		return nil
	}
	return &st
}

// use reports whether an answer counts: it does once.
func (a *approvals) use(st *state) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for n, expires := range a.used {
		if now.After(expires) {
			delete(a.used, n)
		}
	}
	if _, used := a.used[st.Nonce]; used || len(a.used) >= maxUsed {
		return false
	}
	a.used[st.Nonce] = time.Unix(st.Expires+1, 0)
	return true
}

// maxUsed bounds the answers that are remembered: beyond it a person is asked
// again.
const maxUsed = 10_000

// read says what the person answered about a call, and whether for the tool from
// now on.
func (a *approvals) read(tool string, args json.RawMessage, text string, responses mcp.InputResponseMap) (v verdict, always bool) {
	st := a.decode(tool, args, text)
	if st == nil {
		return notAsked, false
	}
	answer, ok := responses[question].(*mcp.ElicitResult)
	switch {
	case st.Approved:
	case !ok:
		return notAsked, false
	case answer.Action != "accept" || answer.Content["decision"] != "once" && answer.Content["decision"] != "always":
		return denied, false
	}
	if !a.use(st) {
		return notAsked, false
	}
	return approved, !st.Approved && answer.Content["decision"] == "always"
}

// remember notes that a person wants no more questions about a subject.
func (a *approvals) remember(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.always[subject] = true
}

// remembered reports whether a person said not to be asked about a subject again.
func (a *approvals) remembered(subject string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.always[subject]
}

// inner is what of a state and the answers is for the server of the tool.
func (a *approvals) inner(text string, responses mcp.InputResponseMap) (string, mcp.InputResponseMap) {
	rest, ok := strings.CutPrefix(text, stateMark)
	if !ok {
		return text, responses
	}
	var st state
	if b, err := base64.RawURLEncoding.DecodeString(rest); err == nil {
		_ = json.Unmarshal(b, &st) // what cannot be read has no inner state
	}
	if _, ours := responses[question]; ours {
		responses = nil
	}
	return st.Inner, responses
}

// wrap keeps the approval of a call beside a question of its server.
func (a *approvals) wrap(tool string, args json.RawMessage, inner string) string {
	return a.encode(tool, args, &state{Approved: true, Inner: inner})
}

// question asks a person about a call.
func (a *approvals) question(r *tools.RefusedError, args json.RawMessage) *mcp.CallToolResult {
	shown := string(compact(args))
	if runes := []rune(shown); len(runes) > 1200 { // what is dangerous may be at the end
		shown = string(runes[:600]) + fmt.Sprintf(" … (%d bytes in all) … ", len(args)) + string(runes[len(runes)-600:])
	}
	if shown == "" {
		shown = "{}"
	}
	msg := fmt.Sprintf("Call %s of %s?\n%s\n\nYou are asked because: %s.", r.Tool.Name, r.Tool.Owner(), shown, r.Reason)
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{question: &mcp.ElicitParams{Message: msg, RequestedSchema: decisionSchema}},
		RequestState:  a.encode(r.Tool.Name, args, &state{}),
	}
}

// decisionSchema demands nothing: an answer without a decision is no approval, and
// not an error of the protocol.
var decisionSchema = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
	"decision": {Type: "string", Title: "Call it?", Enum: []any{"once", "always", "no"},
		Description: "once: this call; always: this tool until the server ends; no: not at all"},
}}

// canElicit reports whether the client of a request can ask a person.
func canElicit(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil
}
