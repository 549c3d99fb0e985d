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

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// approvals asks users about calls through the client and verifies their
// answers. The state that travels with a question is signed for one tool, one
// set of arguments and a short time, so nothing is stored meanwhile. Grants
// beyond the call are stored by the tools.
type approvals struct {
	key    [32]byte
	shared *SharedAnswers // nil is this server alone

	mu       sync.Mutex
	used     map[string]time.Time          // answers that counted, until they expire
	sessions map[*mcp.ServerSession]string // names of connections
}

func newApprovals(shared *SharedAnswers) *approvals {
	a := &approvals{shared: shared, used: map[string]time.Time{}}
	if shared == nil { // else what is sealed needs no other proof
		rand.Read(a.key[:]) // never fails
	}
	return a
}

// SharedAnswers lets a user answer a question of one server at another, if
// clients reach several servers by one address. Its functions must be safe for
// concurrent use.
type SharedAnswers struct {
	// Encrypt encrypts a question, which the client returns with its answer, and
	// Decrypt decrypts it. Decrypt fails for a question that was changed, or
	// encrypted for another user or endpoint.
	Encrypt func(question []byte) []byte
	Decrypt func(sealed []byte) ([]byte, error)
	// MarkUsed records that the answer with an ID is used, until the given time,
	// and reports whether this is its first use on any server. It returns false
	// if that is unknown.
	MarkUsed func(ctx context.Context, answer string, until time.Time) bool
}

// questionKey is the key of our question among the questions of a result.
const questionKey = "loadout/approve"

// answerTime is how long a question waits for its answer.
const answerTime = 15 * time.Minute

type verdict int

const (
	notAsked verdict = iota
	approved
	denied
)

// state travels with a question and comes back with the answer.
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

// compact removes insignificant blanks from JSON, which a client may have
// changed.
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
		b = a.shared.Encrypt(b)
	}
	return stateMark + base64.RawURLEncoding.EncodeToString(b)
}

// decode returns the state of one of our questions about the call, or nil.
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

// unpack reads what encode wrote after the mark.
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

// markUsed reports whether an answer is used for the first time.
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

// maxUsed bounds the remembered answers; beyond it answers do not count, and
// the user is asked again.
const maxUsed = 10_000

// answer is a user's answer about a call.
type answer struct {
	verdict
	subject policy.Digest // the tool that they were asked about
	keep    policy.Scope  // of further calls of it; "" for none
}

// readAnswer returns the user's answer about a call, the zero value for none.
func (a *approvals) readAnswer(ctx context.Context, tool string, args json.RawMessage, text string, responses mcp.InputResponseMap) answer {
	st := a.decode(tool, args, text)
	if st == nil {
		return answer{}
	}
	out := answer{subject: st.Subject}
	if !st.Approved {
		given, ok := responses[questionKey].(*mcp.ElicitResult)
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
	if !a.markUsed(ctx, st) {
		return answer{}
	}
	out.verdict = approved
	return out
}

// scopes maps the affirmative answers to their scope.
var scopes = map[string]policy.Scope{"once": policy.Once, "session": policy.ForSession, "always": policy.Always}

// sessionName names the connection of a request for as long as it lasts, "" if
// it ends with the request.
func (a *approvals) sessionName(sdk *mcp.Server, req *mcp.CallToolRequest) string {
	ss := lastingSession(req)
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

// innerState returns the state and answers that are meant for the tool's
// server.
func (a *approvals) innerState(text string, responses mcp.InputResponseMap) (string, mcp.InputResponseMap) {
	rest, ok := strings.CutPrefix(text, stateMark)
	if !ok {
		return text, responses
	}
	var st state
	_ = a.unpack(rest, &st) // what cannot be read has no inner state
	if _, ours := responses[questionKey]; ours {
		responses = nil
	}
	return st.Inner, responses
}

// wrapState adds our approval of a call to the state of its server's question.
func (a *approvals) wrapState(tool string, args json.RawMessage, subject policy.Digest, inner string) string {
	return a.encode(tool, args, &state{Approved: true, Subject: subject, Inner: inner})
}

// askUser asks the user about a call. It offers a longer scope if grants are
// stored, and "session" if there is one.
func (s *Server) askUser(ctx context.Context, r *loadout.RefusedError, c *tools.Call) *mcp.CallToolResult {
	shown := string(compact(c.Arguments))
	if runes := []rune(shown); len(runes) > 1200 { // what is dangerous may be at the end
		shown = string(runes[:600]) + fmt.Sprintf(" … (%d bytes in all) … ", len(c.Arguments)) + string(runes[len(runes)-600:])
	}
	if shown == "" {
		shown = "{}"
	}
	msg := fmt.Sprintf("Run %s of %s?\n%s\n\nReason: %s.", r.Call.Tool, r.Call.Owner, shown, r.Decision.Reason)
	if !s.tools(ctx).StoresGrants() || r.Call.Subject == "" {
		return s.elicit(r, c, msg, decisionSchema("once: this call", "once"))
	}
	choices, says := []any{"once"}, "once: this call; "
	if c.Session != "" {
		choices, says = append(choices, "session"), says+"session: this tool until this connection ends; "
	}
	revoked := "you revoke it"
	if s.opts.HowToRevoke != nil {
		revoked = s.opts.HowToRevoke(r.Call.Tool)
	}
	says += "always: this tool as it is now, also after a restart, until " + revoked
	return s.elicit(r, c, msg, decisionSchema(says, append(choices, "always")...))
}

func (s *Server) elicit(r *loadout.RefusedError, c *tools.Call, msg string, schema *jsonschema.Schema) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{questionKey: &mcp.ElicitParams{Message: msg, RequestedSchema: schema}},
		RequestState:  s.approvals.encode(r.Call.Tool, c.Arguments, &state{Subject: r.Call.Subject}),
	}
}

// decisionSchema requires nothing: an answer without a decision is a refusal,
// not a protocol error.
func decisionSchema(says string, choices ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"decision": {Type: "string", Title: "Run it?", Enum: append(choices, "no"), Description: says + "; no: not at all"},
	}}
}

// applyAnswer applies the user's answer to a call and stores a longer grant. It
// returns the result of a declined call, else nil.
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
	case a.keep == "" || a.keep == policy.ForSession && c.Session == "":
		return nil
	}
	if err := s.tools(ctx).Grant(ctx, &full, a.keep, false, c.Principal); err != nil && !errors.Is(err, tools.ErrNoGrantStore) {
		s.log.Warn("could not store a grant; the user will be asked again", "tool", name, "error", err)
	}
	return nil
}

// howToApprove returns how a user approves what err refused, "" if err says it.
func (s *Server) howToApprove(err error) string {
	if s.opts.HowToApprove == nil {
		return ""
	}
	return s.opts.HowToApprove(err)
}

// canElicit reports whether the client of a request can ask its user.
func canElicit(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil
}
