//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/toolresult"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// exchange is a client's request to which a server may respond with input
// requests: tools/call, prompts/get or resources/read.
type exchange struct {
	up        *upstreamServer
	method    string
	digest    string // digest of the request without input responses
	responses mcp.InputResponseMap
	state     string
	user      string // authenticated user; may be empty

	// call sends the request to the server.
	call func(ctx context.Context, l *upstreamConn, meta mcp.Meta, given mcp.InputResponseMap, state string) (mcp.Result, error)
	// newQuestion returns a result that requests input from the client.
	newQuestion func(mcp.InputRequestMap, string) mcp.Result
	// convertResult converts a result to the client's protocol.
	convertResult func(mcp.Result, bool) mcp.Result
}

// Results that are empty except for the result type: a final one and a request
// for input. They are decoded from JSON, because the SDK provides no other way
// to set this type.
var (
	toolResults     = sync.OnceValues(newResults[mcp.CallToolResult])
	promptResults   = sync.OnceValues(newResults[mcp.GetPromptResult])
	resourceResults = sync.OnceValues(newResults[mcp.ReadResourceResult])
)

func newResults[R any]() (done, asks R) {
	for v, kind := range map[*R]string{&done: "complete", &asks: "input_required"} {
		if err := json.Unmarshal([]byte(`{"resultType":"`+kind+`"}`), v); err != nil {
			panic(err)
		}
	}
	return done, asks
}

func (s *Server) callTool(ctx context.Context, in *inboundRequest, req *mcp.CallToolRequest) (mcp.Result, error) {
	p := req.Params
	t, err := s.routeTool(ctx, in, p.Name)
	if err != nil {
		return nil, err
	}
	refusal, keep, err := s.authorizeCall(in, req, t)
	if refusal != nil || err != nil {
		return asResult(refusal, err)
	}
	x := &exchange{up: t.up, method: "tools/call", responses: upstream.ForwardedResponses(p.InputResponses), state: p.RequestState, user: requestUser(req.Extra)}
	x.digest = requestDigest(x.method, t.up.Name, t.name, p.Arguments, x.user)
	x.call = func(ctx context.Context, l *upstreamConn, meta mcp.Meta, given mcp.InputResponseMap, state string) (mcp.Result, error) {
		q := &mcp.CallToolParams{Meta: meta, Name: t.name, InputResponses: given, RequestState: state}
		if len(p.Arguments) > 0 {
			q.Arguments = p.Arguments
		}
		return asResult(l.conn.Session.CallTool(toolresult.WithForwarding(ctx, &s.memory), q))
	}
	x.newQuestion = func(asked mcp.InputRequestMap, state string) mcp.Result {
		_, r := toolResults()
		r.InputRequests, r.RequestState = asked, keep(state)
		return &r
	}
	x.convertResult = func(res mcp.Result, modern bool) mcp.Result {
		r := res.(*mcp.CallToolResult)
		if r.NeedsInput() {
			r.RequestState = keep(r.RequestState)
			return r
		}
		return completeResult(r, modern)
	}
	start := time.Now()
	res, err := s.forward(ctx, in, x)
	s.recordCall(ctx, t, res, err, time.Since(start))
	if err == nil || ctx.Err() != nil {
		return res, err
	}
	var e *jsonrpc.Error
	if errors.As(err, &e) && !isSDKCode(e.Code) {
		return nil, unwrapError(err)
	}
	// Report an unreachable server to the model, so that it can continue
	// without the tool.
	return completeResult(&mcp.CallToolResult{IsError: true, Content: []mcp.Content{
		&mcp.TextContent{Text: fmt.Sprintf("Tool %s of server %s failed: %v", t.name, t.up.Name, err)}}}, in.modern), nil
}

// recordCall passes a completed call to [Options.OnCall].
func (s *Server) recordCall(ctx context.Context, t target, res mcp.Result, err error, elapsed time.Duration) {
	if s.opts.OnCall == nil || ctx.Err() != nil {
		return
	}
	r, ok := res.(*mcp.CallToolResult)
	if err == nil && (!ok || r.NeedsInput()) {
		return
	}
	s.opts.OnCall(t.up.Name, t.name, err != nil || r.IsError, elapsed)
}

// completeResult converts a final result to the form of the client's protocol
// version, which is modern or legacy.
func completeResult(r *mcp.CallToolResult, modern bool) *mcp.CallToolResult {
	var c mcp.CallToolResult
	if modern {
		c, _ = toolResults()
	}
	c.Meta, c.Content, c.StructuredContent, c.IsError = clientMeta(r.Meta), r.Content, r.StructuredContent, r.IsError
	if c.Content == nil {
		c.Content = []mcp.Content{}
	}
	return &c
}

// authorizeCall checks whether the tool may be called. If not, it returns a
// result to send instead. It sends input requests for the user in the form that
// the client's protocol requires. The returned function wraps the request state
// of later input requests.
func (s *Server) authorizeCall(in *inboundRequest, req *mcp.CallToolRequest, t target) (*mcp.CallToolResult, func(string) string, error) {
	same := func(state string) string { return state }
	if s.opts.AuthorizeCall == nil {
		return nil, same, nil
	}
	for range maxRounds {
		res, keep, err := s.opts.AuthorizeCall(in.ctx, req, t.up.Name, t.name)
		if keep == nil {
			keep = same
		}
		switch {
		case err != nil || res == nil:
			return nil, keep, err
		case res.InputRequests == nil && !res.NeedsInput(): // created by Loadout, so without a result type
			return completeResult(res, in.modern), keep, nil
		case in.modern:
			_, asks := toolResults()
			asks.InputRequests, asks.RequestState = res.InputRequests, res.RequestState
			return &asks, keep, nil
		}
		given, err := s.answerQuestions(in.ctx, in.ss, res.InputRequests)
		if err != nil {
			return nil, nil, err
		}
		req.Params.InputResponses, req.Params.RequestState = given, res.RequestState
	}
	return nil, nil, fmt.Errorf("too many approval rounds for tool %s (limit %d)", t.name, maxRounds)
}

// authorizeAccess returns an error if the client is not allowed to access a
// prompt or resource.
func (s *Server) authorizeAccess(ctx context.Context, t target, kind string) error {
	if s.opts.AuthorizeAccess == nil {
		return nil
	}
	if err := s.opts.AuthorizeAccess(ctx, t.up.Name, kind, t.name); err != nil {
		return rpcmessage.InvalidParams("%v", err)
	}
	return nil
}

// deniedItems returns a function that reports whether an item must be omitted
// from a list.
func (s *Server) deniedItems(ctx context.Context, kind string) func(target) bool {
	return func(t target) bool { return s.authorizeAccess(ctx, t, kind) != nil }
}

func (s *Server) getPrompt(ctx context.Context, in *inboundRequest, req *mcp.GetPromptRequest) (mcp.Result, error) {
	p := req.Params
	t, err := s.routePrompt(ctx, in, p.Name)
	if err == nil {
		err = s.authorizeAccess(in.ctx, t, "prompt")
	}
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, err
	}
	x := &exchange{up: t.up, method: "prompts/get", responses: upstream.ForwardedResponses(p.InputResponses), state: p.RequestState, user: requestUser(req.Extra)}
	x.digest = requestDigest(x.method, t.up.Name, t.name, args, x.user)
	x.call = func(ctx context.Context, l *upstreamConn, meta mcp.Meta, given mcp.InputResponseMap, state string) (mcp.Result, error) {
		return asResult(l.conn.Session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: t.name, Arguments: p.Arguments, InputResponses: given, RequestState: state}))
	}
	x.newQuestion = func(asked mcp.InputRequestMap, state string) mcp.Result {
		_, r := promptResults()
		r.InputRequests, r.RequestState = asked, state
		return &r
	}
	x.convertResult = func(res mcp.Result, modern bool) mcp.Result {
		r := res.(*mcp.GetPromptResult)
		if r.NeedsInput() {
			return r
		}
		var c mcp.GetPromptResult
		if modern {
			c, _ = promptResults()
		}
		c.Meta, c.Description, c.Messages = clientMeta(r.Meta), r.Description, r.Messages
		if c.Messages == nil {
			c.Messages = []*mcp.PromptMessage{}
		}
		return &c
	}
	res, err := s.forward(ctx, in, x)
	if err != nil {
		return nil, t.up.requestError(x.method, err)
	}
	return res, nil
}

func (s *Server) readResource(ctx context.Context, in *inboundRequest, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	p := req.Params
	t, err := s.routeURI(ctx, in, p.URI)
	if err == nil {
		err = s.authorizeAccess(in.ctx, t, "resource")
	}
	if err != nil {
		return nil, err
	}
	x := &exchange{up: t.up, method: "resources/read", responses: upstream.ForwardedResponses(p.InputResponses), state: p.RequestState, user: requestUser(req.Extra)}
	x.digest = requestDigest(x.method, t.up.Name, t.name, nil, x.user)
	x.call = func(ctx context.Context, l *upstreamConn, meta mcp.Meta, given mcp.InputResponseMap, state string) (mcp.Result, error) {
		return asResult(l.conn.Session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: t.name, InputResponses: given, RequestState: state}))
	}
	x.newQuestion = func(asked mcp.InputRequestMap, state string) mcp.Result {
		_, r := resourceResults()
		r.InputRequests, r.RequestState = asked, state
		return &r
	}
	x.convertResult = func(res mcp.Result, modern bool) mcp.Result {
		r := res.(*mcp.ReadResourceResult)
		if r.NeedsInput() {
			return r
		}
		var c mcp.ReadResourceResult
		if modern {
			c, _ = resourceResults()
		}
		c.Meta, c.Cacheable = clientMeta(r.Meta), r.Cacheable
		c.CacheScope = cmp.Or(c.CacheScope, "private")
		c.Contents = []*mcp.ResourceContents{}
		for _, part := range r.Contents {
			if part != nil && part.URI == t.name && p.URI != t.name {
				renamed := *part
				renamed.URI = p.URI
				part = &renamed
			}
			c.Contents = append(c.Contents, part)
		}
		return &c
	}
	res, err := s.forward(ctx, in, x)
	if err != nil {
		return nil, t.up.requestError(x.method, err)
	}
	return res, nil
}

func (s *Server) completeArgument(ctx context.Context, in *inboundRequest, req *mcp.CompleteRequest, sdk func() (mcp.Result, error)) (mcp.Result, error) {
	p := req.Params
	if p.Ref == nil || p.Argument.Name == "" {
		return sdk() // let the SDK report what is missing
	}
	var t target
	var err error
	ref, kind := *p.Ref, "resource"
	if ref.Type == "ref/prompt" {
		kind = "prompt"
		t, err = s.routePrompt(ctx, in, ref.Name)
		ref.Name = t.name
	} else {
		t, err = s.routeURI(ctx, in, ref.URI)
		ref.URI = t.name
	}
	if err == nil {
		err = s.authorizeAccess(in.ctx, t, kind)
	}
	if err != nil {
		return nil, err
	}
	l, err := in.conn(ctx, t.up)
	if err != nil {
		return nil, t.up.requestError("completion/complete", err)
	}
	res, err := l.conn.Session.Complete(ctx, &mcp.CompleteParams{Meta: serverMeta(in.meta, l, nil), Argument: p.Argument, Context: p.Context, Ref: &ref})
	if err != nil {
		return nil, t.up.requestError("completion/complete", err)
	}
	c := &mcp.CompleteResult{Meta: clientMeta(res.Meta), Completion: res.Completion}
	if c.Completion.Values == nil {
		c.Completion.Values = []string{}
	}
	return c, nil
}

// forward forwards a client's request to a server. The client and the server
// may each use the legacy or the modern protocol.
func (s *Server) forward(ctx context.Context, in *inboundRequest, x *exchange) (mcp.Result, error) {
	if in.client != nil {
		return s.forwardLegacyToModern(ctx, in, x)
	}
	// Log messages can be attributed to a request only if the connection has no
	// other calls.
	_, logs := in.meta[mcp.MetaKeyLogLevel]
	l, err := x.up.shared.get(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case l.isModern() && !logs, !l.isModern() && !logs && !canAnswer(in.caps) && x.state == "":
		res, err := s.requestWithRetry(ctx, in, x, x.up.shared.get)
		if err != nil {
			return nil, err
		}
		return x.convertResult(res, true), nil
	case l.isModern():
		l, err := x.up.acquireConn(ctx, nil)
		if err != nil {
			return nil, err
		}
		res, err := s.requestWithRetry(ctx, in, x, func(context.Context) (*upstreamConn, error) { return l, nil })
		x.up.releaseConn(l, nil, err == nil)
		if err != nil {
			return nil, err
		}
		return x.convertResult(res, true), nil
	}
	return s.forwardModernToLegacy(ctx, in, x)
}

// requestWithRetry sends the request. If the server's session has expired, it
// retries once, because the server did not process the request.
func (s *Server) requestWithRetry(ctx context.Context, in *inboundRequest, x *exchange, get func(context.Context) (*upstreamConn, error)) (mcp.Result, error) {
	for try := 0; ; try++ {
		l, err := get(ctx)
		if err != nil {
			return nil, err
		}
		res, err := s.request(ctx, in, x, l, x.responses, x.state)
		if errors.Is(err, mcp.ErrSessionMissing) && try == 0 {
			l.close()
			continue
		}
		return res, err
	}
}

func (s *Server) request(ctx context.Context, in *inboundRequest, x *exchange, l *upstreamConn, given mcp.InputResponseMap, state string) (mcp.Result, error) {
	c := &call{ctx: in.ctx, ss: in.ss, progress: in.meta["progressToken"], modern: in.modern}
	if in.client != nil {
		c.ask = func(q context.Context, method string, p mcp.Params) (mcp.Result, error) {
			return s.askClient(q, in.ctx, in.ss, method, p)
		}
	}
	l.addCall(c)
	defer l.removeCall(c)
	meta := serverMeta(in.meta, l, c)
	if in.client != nil && l.isModern() {
		if level := in.client.logLevel(); level != "" {
			if meta == nil {
				meta = mcp.Meta{}
			}
			meta[mcp.MetaKeyLogLevel] = level
		}
	}
	return x.call(ctx, l, meta, given, state)
}

// maxRounds is the maximum number of times that a server may request input for
// one client request.
const maxRounds = 10

// forwardLegacyToModern forwards the request of a legacy client. If a modern
// server requests input, it asks the client and retries the request with the
// client's responses.
func (s *Server) forwardLegacyToModern(ctx context.Context, in *inboundRequest, x *exchange) (mcp.Result, error) {
	res, err := s.requestWithRetry(ctx, in, x, in.client.slots[x.up].get)
	for round := 0; err == nil; round++ {
		asked, state, ok := inputRequests(res)
		if !ok {
			return x.convertResult(res, false), nil
		}
		if round == maxRounds {
			return nil, fmt.Errorf("too many rounds of input requests from server %s (limit %d)", x.up.Name, maxRounds)
		}
		if len(asked) == 0 {
			return nil, fmt.Errorf("server %s is busy; try again later", x.up.Name)
		}
		var given mcp.InputResponseMap
		if given, err = s.answerQuestions(in.ctx, in.ss, asked); err != nil {
			return nil, err
		}
		var l *upstreamConn
		if l, err = in.client.slots[x.up].get(ctx); err == nil {
			res, err = s.request(ctx, in, x, l, given, state)
		}
	}
	return nil, err
}

// inputRequests returns the input requests and the request state in a result.
// It returns false if the result is final.
func inputRequests(res mcp.Result) (mcp.InputRequestMap, string, bool) {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	case *mcp.GetPromptResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	case *mcp.ReadResourceResult:
		return r.InputRequests, r.RequestState, r.NeedsInput()
	}
	return nil, "", false
}

// answerQuestions sends input requests to a legacy client concurrently and
// collects the responses.
func (s *Server) answerQuestions(ctx context.Context, ss *mcp.ServerSession, asked mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	given := make(mcp.InputResponseMap, len(asked))
	var mu sync.Mutex // guards given and errs
	var errs []error
	var wg sync.WaitGroup
	for id, q := range asked {
		wg.Go(func() {
			p, method := legacyParams(q)
			res, err := s.askClient(ctx, ctx, ss, method, p)
			mu.Lock()
			defer mu.Unlock()
			if r, ok := res.(mcp.InputResponse); ok && err == nil {
				given[id] = r
			} else {
				errs = append(errs, cmp.Or(err, errors.New("client sent no valid response")))
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return given, nil
}

// legacyParams converts an input request to the params and method of a legacy
// request.
func legacyParams(q mcp.InputRequest) (mcp.Params, string) {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return q, "elicitation/create"
	case *mcp.CreateMessageWithToolsParams:
		return q, "sampling/createMessage"
	}
	return &mcp.ListRootsParams{}, "roots/list"
}

// clientMeta returns a copy of a result's _meta to send to the client. The SDK
// modifies the copy.
func clientMeta(meta mcp.Meta) mcp.Meta {
	m := maps.Clone(meta)
	delete(m, mcp.MetaKeySubscriptionID)
	if len(m) == 0 {
		return nil
	}
	return m
}

// requestUser returns the authenticated user of a request, or "" if there is none.
func requestUser(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	return extra.TokenInfo.UserID
}

func requestDigest(method, server, name string, args []byte, who string) string {
	h := sha256.New()
	for _, part := range []string{method, server, name, string(canonicalJSON(args)), who} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// canonicalJSON returns js with sorted keys and without insignificant space. It
// returns invalid JSON unchanged.
func canonicalJSON(js []byte) []byte {
	if out, err := plainjson.Canonical(js); err == nil {
		return out
	}
	return js
}
