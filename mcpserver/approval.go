package mcpserver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// approvals asks a person about calls through the client, and knows the answer
// again: the state that the client sends back is signed, for one tool with one
// set of arguments and a short time, so that nothing is kept here meanwhile. What
// they allow beyond the call is the tools' to keep.
type approvals struct {
	key    [32]byte
	shared *Answers // nil is this server alone

	mu       sync.Mutex
	used     map[string]time.Time          // answers that counted, until they expire
	sessions map[*mcp.ServerSession]string // names of connections
}

func newApprovals(shared *Answers) *approvals {
	a := &approvals{shared: shared, used: map[string]time.Time{}}
	if shared == nil { // else what is sealed needs no other proof
		rand.Read(a.key[:]) // never fails
	}
	return a
}

// Answers let a person answer at one server what another one asked, as where clients
// reach several by one address. Its functions are called by several goroutines at once.
type Answers struct {
	// Seal and Open keep a question from being read, changed or made by others, who
	// carry it. What is sealed for one person and one endpoint does not open for
	// another.
	Seal func(question []byte) []byte
	Open func(sealed []byte) ([]byte, error)
	// Use reports whether an answer, by its name, is used for the first time anywhere,
	// and false where that cannot be known. It need not be remembered after until.
	Use func(ctx context.Context, answer string, until time.Time) bool
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
	Expires  int64         `json:"exp"`
	Nonce    string        `json:"n"`
	Subject  policy.Digest `json:"s,omitempty"` // the tool as it was
	Approved bool          `json:"ok,omitempty"`
	Inner    string        `json:"inner,omitempty"` // the server's own state
	MAC      []byte        `json:"mac"`
}

func (a *approvals) sign(tool string, args json.RawMessage, st *state) []byte {
	m := hmac.New(sha256.New, a.key[:])
	args = compact(args)
	fmt.Fprintf(m, "%d %q %q %t %d %d %d ", st.Expires, st.Nonce, st.Subject, st.Approved, len(st.Inner), len(tool), len(args))
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
	if a.shared != nil {
		b = a.shared.Seal(b)
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
	var st state
	if a.unpack(rest, &st) != nil {
		return nil
	}
	if !hmac.Equal(st.MAC, a.sign(tool, args, &st)) || time.Now().Unix() > st.Expires {
		return nil
	}
	return &st
}

// unpack reads what encode wrote behind the mark.
func (a *approvals) unpack(text string, st *state) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && a.shared != nil {
		b, err = a.shared.Open(b)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, st)
}

// use reports whether an answer counts: it does once.
func (a *approvals) use(ctx context.Context, st *state) bool {
	if a.shared != nil {
		return a.shared.Use(ctx, st.Nonce, time.Unix(st.Expires+1, 0))
	}
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

// answer is what a person said about a call.
type answer struct {
	verdict
	subject policy.Digest // the tool that they were asked about
	keep    policy.Scope  // of further calls of it; "" for none
}

// read says what the person answered about a call.
func (a *approvals) read(ctx context.Context, tool string, args json.RawMessage, text string, responses mcp.InputResponseMap) answer {
	st := a.decode(tool, args, text)
	if st == nil {
		return answer{}
	}
	out := answer{subject: st.Subject}
	if !st.Approved {
		given, ok := responses[question].(*mcp.ElicitResult)
		if !ok {
			return answer{}
		}
		scope, ok := scopes[fmt.Sprint(given.Content["decision"])]
		if given.Action != "accept" || !ok {
			out.verdict = denied
			return out
		}
		if scope != policy.Once { // which is this call
			out.keep = scope
		}
	}
	if !a.use(ctx, st) {
		return answer{}
	}
	out.verdict = approved
	return out
}

// scopes are the answers that are a yes.
var scopes = map[string]policy.Scope{"once": policy.Once, "session": policy.ForSession, "always": policy.Always}

// session names the connection of a request for as long as it lasts, "" where it
// ends with the request.
func (a *approvals) session(sdk *mcp.Server, req *mcp.CallToolRequest) string {
	ss := lasting(req)
	if ss == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if id := a.sessions[ss]; id != "" {
		return id
	}
	alive := map[*mcp.ServerSession]string{ss: "mcp-" + rand.Text()}
	for other := range sdk.Sessions() {
		if id := a.sessions[other]; id != "" {
			alive[other] = id
		}
	}
	a.sessions = alive
	return alive[ss]
}

// inner is what of a state and the answers is for the server of the tool.
func (a *approvals) inner(text string, responses mcp.InputResponseMap) (string, mcp.InputResponseMap) {
	rest, ok := strings.CutPrefix(text, stateMark)
	if !ok {
		return text, responses
	}
	var st state
	_ = a.unpack(rest, &st) // what cannot be read has no inner state
	if _, ours := responses[question]; ours {
		responses = nil
	}
	return st.Inner, responses
}

// wrap keeps the approval of a call beside a question of its server.
func (a *approvals) wrap(tool string, args json.RawMessage, subject policy.Digest, inner string) string {
	return a.encode(tool, args, &state{Approved: true, Subject: subject, Inner: inner})
}

// question asks a person about a call. What they may allow beyond it is offered
// where that is kept, for a session where there is one.
func (s *Server) question(r *tools.RefusedError, c *tools.Call) *mcp.CallToolResult {
	shown := string(compact(c.Arguments))
	if runes := []rune(shown); len(runes) > 1200 { // what is dangerous may be at the end
		shown = string(runes[:600]) + fmt.Sprintf(" … (%d bytes in all) … ", len(c.Arguments)) + string(runes[len(runes)-600:])
	}
	if shown == "" {
		shown = "{}"
	}
	msg := fmt.Sprintf("Call %s of %s?\n%s\n\nYou are asked because: %s.", r.Tool.Name, r.Tool.Owner(), shown, r.Reason)
	if !s.opts.Tools.Keeps() || r.Tool.Subject() == "" {
		return s.asks(r, c, msg, decisionSchema("once: this call", "once"))
	}
	choices, says := []any{"once"}, "once: this call; "
	if c.Session != "" {
		choices, says = append(choices, "session"), says+"session: this tool until this connection ends; "
	}
	says += "always: this tool as it is now, also after a restart, until "
	if s.opts.Allow == nil {
		says += "loadout approve --revoke " + r.Tool.Name
	} else {
		says += "you withdraw it"
	}
	return s.asks(r, c, msg, decisionSchema(says, append(choices, "always")...))
}

func (s *Server) asks(r *tools.RefusedError, c *tools.Call, msg string, schema *jsonschema.Schema) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{question: &mcp.ElicitParams{Message: msg, RequestedSchema: schema}},
		RequestState:  s.approvals.encode(r.Tool.Name, c.Arguments, &state{Subject: r.Tool.Subject()}),
	}
}

// decisionSchema demands nothing: an answer without a decision is no approval, and
// not an error of the protocol.
func decisionSchema(says string, choices ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"decision": {Type: "string", Title: "Call it?", Enum: append(choices, "no"), Description: says + "; no: not at all"},
	}}
}

// take makes what the person answered part of a call, and keeps what they allowed
// beyond it. It returns the answer in place of the call where they said no.
func (s *Server) take(ctx context.Context, c *tools.Call, name string, a answer) *mcp.CallToolResult {
	c.Approved, c.Subject = a.verdict == approved, a.subject
	full := *c
	full.Name = name
	switch {
	case a.verdict == denied:
		if err := s.opts.Tools.Declined(ctx, &full); err != nil {
			s.log.Error("a refusal could not be recorded", "tool", name, "error", err)
		}
		return notApproved(name)
	case a.keep == "" || a.keep == policy.ForSession && c.Session == "":
		return nil
	}
	if err := s.opts.Tools.Grant(ctx, &full, a.keep, false, s.opts.Person); err != nil && !errors.Is(err, tools.ErrKeepsNothing) {
		s.log.Warn("leave for a tool was not kept, and the person is asked again", "tool", name, "error", err)
	}
	return nil
}

// allowing says how a person allows what err refused, "" where err says it best.
func (s *Server) allowing(err error) string {
	if s.opts.Allow == nil {
		return ""
	}
	return s.opts.Allow(err)
}

// canElicit reports whether the client of a request can ask a person.
func canElicit(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil
}
