package mcpserver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// approvals asks users to approve calls through the client and verifies their
// answers. The state that is sent with a question is signed. It is valid for
// one tool, one set of arguments and a short time, so the server does not store
// it. Grants that cover more than one call are stored by the tool set.
type approvals struct {
	key    [32]byte
	shared *SharedAnswers // nil if no other server accepts answers

	mu       sync.Mutex
	declined map[policy.Digest]bool        // digests of the skill versions that the user declined
	used     map[string]time.Time          // IDs of used answers, with their expiry times
	sessions map[*mcp.ServerSession]string // names of connections, for session grants
}

func newApprovals(shared *SharedAnswers) *approvals {
	a := &approvals{shared: shared, declined: map[policy.Digest]bool{}, used: map[string]time.Time{}}
	if shared == nil { // shared states are encrypted and need no signature
		rand.Read(a.key[:]) // never fails
	}
	return a
}

// SharedAnswers lets one server accept answers to another server's approval
// questions. It is for clients that reach several servers at one address. All
// functions are required and must be safe for concurrent use. A question can be
// answered for 15 minutes.
type SharedAnswers struct {
	// Encrypt encrypts a question, which the client returns with its answer.
	// Decrypt decrypts it. Decrypt returns an error if the question was
	// modified or was encrypted for another user or endpoint. The user is then
	// asked again.
	Encrypt func(question []byte) []byte
	Decrypt func(sealed []byte) ([]byte, error)
	// MarkUsed records that the answer with the given ID was used. The record
	// must last until the given time. MarkUsed reports whether this is the
	// first use on any server, and returns false if that is unknown.
	MarkUsed func(ctx context.Context, answer string, until time.Time) bool
}

// questionKey is the key of the approval question in a result's input requests.
const questionKey = "loadout/approve"

// answerTime is the time that a user has to answer a question.
const answerTime = 15 * time.Minute

type verdict int

const (
	notPrompted verdict = iota
	approved
	denied
	unanswered // the user closed the question or gave no decision
)

// state is sent with a question and returned with the answer.
type state struct {
	Expires  int64         `json:"exp"`
	Nonce    string        `json:"n"`
	Subject  policy.Digest `json:"s,omitempty"`   // the tool as shown in the question
	AnyArgs  bool          `json:"any,omitempty"` // whether a longer approval covers calls with other arguments
	Approved bool          `json:"ok,omitempty"`
	Inner    string        `json:"inner,omitempty"` // state of the question that the tool's own server asked
	MAC      []byte        `json:"mac"`
}

func (a *approvals) sign(tool string, args json.RawMessage, st *state) []byte {
	m := hmac.New(sha256.New, a.key[:])
	args = compact(args)
	fmt.Fprintf(m, "%d %q %q %t %t %d %d %d ", st.Expires, st.Nonce, st.Subject, st.AnyArgs, st.Approved, len(st.Inner), len(tool), len(args))
	m.Write([]byte(st.Inner + tool))
	m.Write(args)
	return m.Sum(nil)
}

// compact removes insignificant white space from JSON, because clients may
// reformat it.
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
		panic(err) // cannot fail for plain data
	}
	if a.shared != nil {
		b = a.shared.Encrypt(b)
	}
	return stateMark + base64.RawURLEncoding.EncodeToString(b)
}

// decode returns the state of an approval question about this call, or nil if
// text is not a valid one.
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

// unpack decodes the output of encode. text must not start with stateMark.
func (a *approvals) unpack(text string, st *state) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && a.shared != nil {
		b, err = a.shared.Decrypt(b)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, st)
}

// markUsed records that an answer was used. It reports whether this is its
// first use.
func (a *approvals) markUsed(ctx context.Context, st *state) bool {
	if a.shared != nil {
		return a.shared.MarkUsed(ctx, st.Nonce, time.Unix(st.Expires+1, 0))
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

// maxUsed is the maximum number of used answers stored. Beyond it, answers are
// ignored and the user is asked again.
const maxUsed = 10_000

// answer is a user's answer to an approval question.
type answer struct {
	verdict
	subject policy.Digest // the tool shown in the question
	anyArgs bool          // whether keep covers calls with other arguments
	keep    policy.Scope  // scope of a grant for further calls; "" for none
}

// readAnswer returns the user's answer to the approval question about a call,
// or the zero value if there is none.
func (a *approvals) readAnswer(ctx context.Context, tool string, args json.RawMessage, text string, responses mcp.InputResponseMap) answer {
	st := a.decode(tool, args, text)
	if st == nil {
		return answer{}
	}
	out := answer{subject: st.Subject, anyArgs: st.AnyArgs}
	if !st.Approved {
		given, ok := responses[questionKey].(*mcp.ElicitResult)
		if !ok {
			return answer{}
		}
		decision := given.Content["decision"]
		scope, ok := scopes[fmt.Sprint(decision)]
		switch {
		case given.Action == "decline", given.Action == "accept" && decision == "no":
			out.verdict = denied
			return out
		case given.Action != "accept" || !ok:
			out.verdict = unanswered
			return out
		}
		if scope != policy.Once { // Once covers only this call
			out.keep = scope
		}
	}
	if !a.markUsed(ctx, st) {
		return answer{}
	}
	out.verdict = approved
	return out
}

// scopes maps the user's affirmative answers to scopes of grants.
var scopes = map[string]policy.Scope{"once": policy.Once, "session": policy.ForSession, "always": policy.Always}

// sessionName returns a name for the request's connection that is stable for
// its lifetime. It returns "" if the connection ends with the request.
func (a *approvals) sessionName(sessions iter.Seq[*mcp.ServerSession], req *mcp.CallToolRequest) string {
	ss := longLivedSession(req)
	if ss == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if id := a.sessions[ss]; id != "" {
		return id
	}
	alive := map[*mcp.ServerSession]string{ss: "mcp-" + rand.Text()}
	for other := range sessions {
		if id := a.sessions[other]; id != "" {
			alive[other] = id
		}
	}
	a.sessions = alive
	return alive[ss]
}

// innerState returns the part of the state and of the responses that belongs to
// a question of the tool's own server.
func (a *approvals) innerState(text string, responses mcp.InputResponseMap) (string, mcp.InputResponseMap) {
	rest, ok := strings.CutPrefix(text, stateMark)
	if !ok {
		return text, responses
	}
	var st state
	_ = a.unpack(rest, &st) // unreadable state has no inner state
	if _, ours := responses[questionKey]; ours {
		responses = nil
	}
	return st.Inner, responses
}

// wrapState returns the state for a question that the tool's own server asks
// after the user approved the call. It contains the approval and the server's
// state.
func (a *approvals) wrapState(tool string, args json.RawMessage, subject policy.Digest, inner string) string {
	return a.encode(tool, args, &state{Approved: true, Subject: subject, Inner: inner})
}

// askUser asks the user to approve a call. It offers longer scopes if grants
// are stored, and the session scope only if the call has a session.
func (s *Server) askUser(ctx context.Context, r *loadout.RefusedError, c *tools.Call) *mcp.CallToolResult {
	shown := string(compact(c.Arguments))
	if runes := []rune(shown); len(runes) > 1200 { // dangerous parts may be at the end
		shown = string(runes[:600]) + fmt.Sprintf(" … (%d bytes in all) … ", len(c.Arguments)) + string(runes[len(runes)-600:])
	}
	if shown == "" {
		shown = "{}"
	}
	msg := fmt.Sprintf("Run %s of %s?\n%s\n\nReason: %s.", r.Call.Tool, r.Call.Owner, shown, r.Decision.Reason)
	if r.Call.ReadOnly {
		msg += " " + readOnlyNote
	}
	if !s.tools(ctx).StoresGrants() || r.Call.Subject == "" {
		return s.elicit(r, c, msg, decisionSchema("once: this call", "once"))
	}
	choices, says := []any{"once"}, "once: this call; "
	calls := "this tool"
	if r.Call.SameArguments {
		calls += " with these arguments"
	}
	if c.Session != "" {
		choices, says = append(choices, "session"), says+"session: "+calls+" until this connection ends; "
	}
	revoked := "you revoke it"
	if s.opts.HowToRevoke != nil {
		revoked = s.opts.HowToRevoke(r.Call.Tool)
	}
	says += "always: " + calls + " as it is now, also after a restart, until " + revoked
	return s.elicit(r, c, msg, decisionSchema(says, append(choices, "always")...))
}

// readOnlyNote is added to the question about a tool that declares itself
// read-only. The answer also covers calls of the tool through read_tool.
const readOnlyNote = "The tool declares that it only reads data."

func (s *Server) elicit(r *loadout.RefusedError, c *tools.Call, msg string, schema *jsonschema.Schema) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{questionKey: &mcp.ElicitParams{Message: msg, RequestedSchema: schema}},
		RequestState:  s.approvals.encode(r.Call.Tool, c.Arguments, &state{Subject: r.Call.Subject, AnyArgs: !r.Call.SameArguments}),
	}
}

// decisionSchema returns the schema of the user's decision. It is required and
// has no default, so that a form sent by mistake neither permits nor refuses
// the call.
func decisionSchema(description string, choices ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Required: []string{"decision"}, Properties: map[string]*jsonschema.Schema{
		"decision": {Type: "string", Title: "Run it?", Enum: append(choices, "no"), Description: description + "; no: not at all"},
	}}
}

// cancelUndecided is a sending middleware that treats a form without a valid
// decision as no answer. Without it, the SDK would fail the call as if the
// server were at fault.
func cancelUndecided(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		given, ok := res.(*mcp.ElicitResult)
		if err != nil || !ok || given == nil || given.Action != "accept" {
			return res, err
		}
		asked, ok := req.GetParams().(*mcp.ElicitParams)
		if !ok {
			return res, err
		}
		schema, ok := asked.RequestedSchema.(*jsonschema.Schema)
		if !ok || schema.Properties["decision"] == nil || slices.Contains(schema.Properties["decision"].Enum, given.Content["decision"]) {
			return res, err
		}
		return &mcp.ElicitResult{Meta: given.Meta, Action: "cancel"}, nil
	}
}

// applyAnswer applies the user's answer to a call. If the user approved more
// than this call, it stores a grant. If the user declined or did not answer, it
// returns the result of the call; otherwise it returns nil.
func (s *Server) applyAnswer(ctx context.Context, c *tools.Call, name string, a answer) *mcp.CallToolResult {
	c.Approved, c.Subject = a.verdict == approved, a.subject
	full := *c
	full.Name = name
	switch {
	case a.verdict == denied:
		if err := s.tools(ctx).RecordDecline(ctx, &full); err != nil {
			s.log.Error("could not record a refusal", "tool", name, "error", err)
		}
		return notApproved(name)
	case a.verdict == unanswered:
		return errorResult("The user gave no answer about the call of " + name + ". Ask them whether to make it, then try again.")
	case a.keep == "" || a.keep == policy.ForSession && c.Session == "", !s.tools(ctx).StoresGrants():
		return nil
	}
	if err := s.tools(ctx).Grant(ctx, &full, a.keep, !a.anyArgs, c.Principal); err != nil {
		s.log.Warn("could not store a grant; the user will be asked again", "tool", name, "error", err)
	}
	return nil
}

// howToApprove returns the text of [Options.HowToApprove] for err, or "" if
// there is none.
func (s *Server) howToApprove(err error) string {
	if s.opts.HowToApprove == nil {
		return ""
	}
	return s.opts.HowToApprove(err)
}

// isUserAction reports whether hint completes a sentence that starts with "The
// user can". The message of a refusal starts with this sentence, because
// clients and models truncate or summarize the end of an error.
func isUserAction(hint string) bool { return hint != "" && !strings.HasPrefix(hint, "to ") }

// presenceOf returns the [policy.Grant.Presence] of a user who answers through
// the client that sent req. The text names the client, because only the client's
// response shows that the user was asked.
func presenceOf(req *mcp.CallToolRequest) string {
	const answered = "answered in an MCP client"
	c := req.ClientInfo()
	if c == nil {
		return answered
	}
	return answered + ": " + truncate(untrusted.New(strings.TrimSpace(c.Name+" "+c.Version)).ForLog(), maxClientName)
}

// maxClientName is the maximum number of characters of a client's name and
// version in a grant.
const maxClientName = 50

// canElicit reports whether the request's client can ask its user for input.
func canElicit(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil
}
