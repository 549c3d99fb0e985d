package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(staged{m}) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// ways lists the transports of a client.
var ways = []way{{"stdio", legacy}, {"stdio", modern}, {"http", legacy}, {"http", modern}}

type way struct{ transport, version string }

func (w way) String() string { return w.transport + " " + w.version }

// files is a tree by path.
type files map[string]string

func (f files) write(t testing.TB, dir string) {
	t.Helper()
	for name, text := range f {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " is for.\n---\n" + body
}

// world is a server of skills in a directory.
type world struct {
	dir    string
	rt     *loadout.Runtime
	server *mcpserver.Server
	set    *tools.Set // nil without servers
}

type setup struct {
	tree    files
	filter  catalog.Filter
	options mcpserver.Options
	sources []catalog.Source // besides the directory
	scripts *loadout.Scripts
	servers []string           // MCP servers at hand, see newTools
	configs []*upstream.Config // more of them
	shared  func(*upstream.Config) bool
	cache   upstream.Cache // of their tools
	rules   []string
	grants  policy.Store
	audit   func(context.Context, policy.Record) error
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	s.tree.write(t, w.dir)
	sources := append([]catalog.Source{catalog.NewDir("local", catalog.User, w.dir, nil)}, s.sources...)
	if s.scripts == nil {
		s.scripts = &loadout.Scripts{Grants: allApproved{policy.NewMemoryStore()}, ReadServers: tools.ReadServers}
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: sources, Filter: s.filter, Scripts: s.scripts})
	if err != nil {
		t.Fatal(err)
	}
	if s.servers != nil {
		s.options.Tools = newTools(t, rt, &s)
	}
	w.set = s.options.Tools
	w.rt, w.server = rt, mcpserver.New(rt, &s.options)
	t.Cleanup(func() {
		if err := errors.Join(w.server.Close(), rt.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// change writes files and lets the catalog see it.
func (w *world) change(t testing.TB, f files) {
	t.Helper()
	f.write(t, w.dir)
	w.reload(t)
}

func (w *world) remove(t testing.TB, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		t.Fatal(err)
	}
	w.reload(t)
}

func (w *world) reload(t testing.TB) {
	t.Helper()
	if err := w.rt.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// serve is the server over HTTP.
func (w *world) serve(t testing.TB, o *mcpserver.HTTPOptions) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(w.server.Handler(o))
	t.Cleanup(func() {
		srv.CloseClientConnections() // streams that clients hold open never end by themselves
		srv.Close()
	})
	return srv
}

// limited bounds the waiting time of a test. It should never be reached.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pipes connects two ends as standard input and output do.
func pipes() (server, client mcp.Transport, hangUp func()) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	return &mcp.IOTransport{Reader: inR, Writer: outW}, &mcp.IOTransport{Reader: outR, Writer: inW}, func() { inW.Close() }
}

// client is a connected client.
type client struct {
	*mcp.ClientSession
	t   testing.TB
	ctx context.Context
}

// connect connects a client of the SDK.
func (w *world) connect(t testing.TB, how way, o *mcp.ClientOptions) *client {
	t.Helper()
	ctx := limited(t)
	var transport mcp.Transport
	if how.transport == "http" {
		transport = &mcp.StreamableClientTransport{Endpoint: w.serve(t, nil).URL + "/mcp", MaxRetries: -1}
	} else {
		var server mcp.Transport
		server, transport, _ = pipes()
		done := make(chan error, 1)
		go func() { done <- w.server.Run(context.WithoutCancel(ctx), server) }()
		t.Cleanup(func() { <-done })
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	for _, m := range []string{"skills/list", "skills/get", "resources/directory/read"} {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](c, m); err != nil {
			t.Fatal(err)
		}
	}
	cs, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: how.version})
	if err != nil {
		t.Fatalf("connect over %s: %v", how, err)
	}
	t.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != how.version {
		t.Fatalf("the protocol is %s, want %s", got, how.version)
	}
	return &client{cs, t, ctx}
}

// everyWay runs a test over every way to connect.
func everyWay(t *testing.T, s setup, test func(*testing.T, *world, *client)) {
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			w := newWorld(t, s)
			test(t, w, w.connect(t, how, nil))
		})
	}
}

// rawParams and rawResult carry the methods of the Skills extension.
type rawParams struct {
	mcp.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

type rawResult struct {
	mcp.ResultBase
	ResultType string            `json:"resultType"`
	TTLMs      *int              `json:"ttlMs"`
	CacheScope string            `json:"cacheScope"`
	NextCursor string            `json:"nextCursor"`
	Skills     []*skillEntry     `json:"skills"`
	Skill      *skillEntry       `json:"skill"`
	Resources  []json.RawMessage `json:"resources"`
}

type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	} `json:"resources"`
}

func (c *client) custom(method string, p *rawParams) (*rawResult, error) {
	return mcp.CallCustomMethod[*rawParams, *rawResult](c.ctx, c.ClientSession, method, p)
}

// call calls a tool.
func (c *client) call(tool string, args any) *mcp.CallToolResult {
	c.t.Helper()
	res, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.t.Fatalf("call %s %v: %v", tool, args, err)
	}
	return res
}

type args = map[string]any

// textOf is the text of a result.
func textOf(res *mcp.CallToolResult) string {
	var parts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "|")
}

// structured decodes the structured content of a result.
func structured[T any](t testing.TB, res *mcp.CallToolResult) T {
	t.Helper()
	var out T
	js, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(js)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("structured content %s: %v", js, err)
	}
	return out
}

// code is the JSON-RPC code of an error, 0 for another error.
func code(err error) int64 {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	return 0
}

// post sends a request and returns the status and the body.
func post(t testing.TB, req *http.Request) (int, string, http.Header) {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return res.StatusCode, string(b), res.Header
}

func ioTransport(r io.ReadCloser, w io.WriteCloser) mcp.Transport {
	return &mcp.IOTransport{Reader: r, Writer: w}
}
