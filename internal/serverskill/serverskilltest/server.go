// Package serverskilltest starts MCP servers over HTTP that publish skills. Only
// tests import it. Start reading at [Start].
package serverskilltest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// Server is an MCP server. What it publishes depends on the account of the client,
// which is its bearer token, or "". A resource whose URI ends in /SKILL.md is a skill
// with all resources below the same directory; see [Text].
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	files    map[string]map[string]string // by account and URI
	served   map[string]map[string]string // replaces files in resources/read
	unlisted map[string]bool              // URIs of skills that skills/list omits
	meta     map[string]any               // _meta of entries and files
	requests []string
}

// Start starts a server, and stops it when the test ends.
func Start(t testing.TB) *Server {
	s := &Server{files: map[string]map[string]string{}, served: map[string]map[string]string{}, unlisted: map[string]bool{}}
	var mu sync.Mutex
	servers := map[string]*mcp.Server{}
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		mu.Lock()
		defer mu.Unlock()
		account := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if servers[account] == nil {
			servers[account] = s.newServer(account)
		}
		return servers[account]
	}, &mcp.StreamableHTTPOptions{Stateless: true})
	s.Server = httptest.NewServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Text returns the content of a SKILL.md for the skill with the given name.
func Text(name, body string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + ".\n---\n" + body
}

// Put sets the content of a resource for an account.
func (s *Server) Put(account, uri, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(s.files, account, uri, text)
}

// Serve sets what resources/read returns for a resource, without changing the entry
// of its skill.
func (s *Server) Serve(account, uri, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(s.served, account, uri, text)
}

func put(all map[string]map[string]string, account, uri, text string) {
	if all[account] == nil {
		all[account] = map[string]string{}
	}
	all[account][uri] = text
}

// Unlist makes skills/list omit a skill, which is still served.
func (s *Server) Unlist(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted[uri] = true
}

// SetMeta sets the _meta of all entries and files.
func (s *Server) SetMeta(meta map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = meta
}

// Requests returns the requests so far that begin with prefix, as "METHOD ACCOUNT URI".
func (s *Server) Requests(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return !strings.HasPrefix(r, prefix) })
}

type params struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
	URI    string `json:"uri,omitempty"`
}

type result struct {
	mcp.ResultBase
	fields map[string]any
}

// MarshalJSON implements [json.Marshaler].
func (r *result) MarshalJSON() ([]byte, error) { return json.Marshal(r.fields) }

func (s *Server) newServer(account string) *mcp.Server {
	caps := &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{}}
	caps.AddExtension(upstream.SkillsExtension, map[string]any{})
	sdk := mcp.NewServer(&mcp.Implementation{Name: "publisher", Version: "1"}, &mcp.ServerOptions{Capabilities: caps})
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(mcp.AddReceivingCustomMethod(sdk, "skills/list", func(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.record("skills/list", account, "")
		return s.list(account, p)
	}))
	must(mcp.AddReceivingCustomMethod(sdk, "skills/get", func(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.record("skills/get", account, p.URI)
		if _, ok := s.files[account][p.URI]; !ok || !strings.HasSuffix(p.URI, "/SKILL.md") {
			return nil, notFound(p.URI)
		}
		return &result{fields: map[string]any{"resultType": "complete", "skill": s.entry(account, p.URI), "ttlMs": 0, "cacheScope": "private"}}, nil
	}))
	sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			read, ok := req.(*mcp.ReadResourceRequest)
			if !ok {
				return next(ctx, method, req)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.record("resources/read", account, read.Params.URI)
			text, ok := s.files[account][read.Params.URI]
			if !ok {
				return nil, notFound(read.Params.URI)
			}
			if other, ok := s.served[account][read.Params.URI]; ok {
				text = other
			}
			c := &mcp.ResourceContents{URI: read.Params.URI, MIMEType: "text/markdown", Meta: s.meta}
			if c.Text = text; text == "" || !utf8.ValidString(text) {
				c.Text, c.Blob = "", []byte(text)
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
		}
	})
	return sdk
}

func (s *Server) record(method, account, uri string) {
	s.requests = append(s.requests, strings.TrimSpace(method+" "+account+" "+uri))
}

func notFound(uri string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown resource " + uri}
}

// list returns the page with one skill that follows the cursor, an index.
func (s *Server) list(account string, p *params) (*result, error) {
	var all []string
	for uri := range s.files[account] {
		if strings.HasSuffix(uri, "/SKILL.md") && !s.unlisted[uri] {
			all = append(all, uri)
		}
	}
	slices.Sort(all)
	at := 0
	if p != nil && p.Cursor != "" {
		fmt.Sscan(p.Cursor, &at)
	}
	fields := map[string]any{"resultType": "complete", "skills": []any{}, "ttlMs": 60_000, "cacheScope": "private"}
	if at < len(all) {
		fields["skills"] = []any{s.entry(account, all[at])}
	}
	if at+1 < len(all) {
		fields["nextCursor"] = fmt.Sprint(at + 1)
	}
	return &result{fields: fields}, nil
}

// entry returns the entry of a skill.
func (s *Server) entry(account, uri string) map[string]any {
	root := strings.TrimSuffix(uri, "SKILL.md")
	name := root[strings.LastIndexByte(strings.TrimSuffix(root, "/"), '/')+1 : len(root)-1]
	var resources []any
	for _, file := range slices.Sorted(maps.Keys(s.files[account])) {
		if strings.HasPrefix(file, root) {
			text := s.files[account][file]
			resources = append(resources, map[string]any{"uri": file, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), "size": len(text)})
		}
	}
	sk, _ := skill.ParseBytes([]byte(s.files[account][uri]), "", name)
	frontmatter, err := sk.FrontmatterJSON()
	if err != nil {
		panic(err)
	}
	out := map[string]any{"uri": uri, "frontmatter": frontmatter, "resources": resources}
	if s.meta != nil {
		out["_meta"] = s.meta
	}
	return out
}
