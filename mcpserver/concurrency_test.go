package mcpserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Many clients of every kind call while the catalog changes under them: every
// answer is whole, of some state of the catalog, and nothing is left behind.
func TestManyClientsWhileTheCatalogChanges(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	endpoint := w.serve(t, nil).URL + "/mcp"
	ctx, stop := context.WithCancel(limited(t))
	var writer, clients sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			files{
				"pdf/SKILL.md":                                 skillText("pdf", fmt.Sprintf("# PDF %d\n%s", i, strings.Repeat("x", 1000))),
				fmt.Sprintf("extra-%d/SKILL.md", i%5):          skillText(fmt.Sprintf("extra-%d", i%5), fmt.Sprint("# Extra ", i)),
				fmt.Sprintf("pdf/references/f%d.md", i%7):      "x",
				fmt.Sprintf("dup-%d/csv/SKILL.md", i%3):        skillText("csv", fmt.Sprint("# CSV ", i)),
				fmt.Sprintf("dup-%d/csv/note-%d.md", i%3, i%2): "x",
			}.write(t, w.dir)
			_ = w.rt.Catalog().Reload(ctx)
		}
	})
	const rounds = 12
	for i := range 8 {
		how := ways[i%len(ways)]
		clients.Go(func() {
			var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: endpoint, MaxRetries: -1}
			if how.transport == "stdio" {
				var server mcp.Transport
				server, transport, _ = pipes()
				clients.Go(func() { w.server.Run(context.WithoutCancel(ctx), server) })
			}
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
			}).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: how.version})
			if err != nil {
				t.Error(err)
				return
			}
			defer cs.Close()
			c := &client{cs, t, ctx}
			for range rounds {
				load, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "load_skill", Arguments: args{"name": "pdf"}})
				if err != nil || load.IsError || !strings.Contains(textOf(load), "# PDF") {
					// A file may be caught between being emptied and written.
					if err != nil || !strings.Contains(textOf(load), "does not load") {
						t.Errorf("%s: load_skill: %v, %v", how, load, err)
						return
					}
				}
				if res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "search_skills", Arguments: args{"query": "extra"}}); err != nil || res.IsError {
					t.Errorf("%s: search_skills: %v, %v", how, res, err)
					return
				}
				if res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "read_skill_file", Arguments: args{"skill": "pdf", "path": "references/forms.md"}}); err != nil || res.IsError {
					t.Errorf("%s: read_skill_file: %v, %v", how, res, err)
					return
				}
				if _, err := c.ListTools(ctx, nil); err != nil {
					t.Errorf("%s: tools/list: %v", how, err)
					return
				}
				if list, err := c.ListPrompts(ctx, nil); err != nil || len(list.Prompts) < 5 {
					t.Errorf("%s: prompts/list: %v, %v", how, list, err)
					return
				}
			}
		})
	}
	clients.Wait()
	stop()
	writer.Wait()
	w.reload(t)
	if n, told := w.server.Connections(), w.server.Told(); n != 0 || told != 0 {
		t.Errorf("%d connections are there and %d are remembered, want none", n, told)
	}
}

func TestServerMissesNoChangeDuringCreation(t *testing.T) {
	for i := range 20 {
		w := newWorld(t, setup{tree: files{"a/SKILL.md": skillText("a", "x")}})
		files{"b/SKILL.md": skillText("b", "x")}.write(t, w.dir)
		reloaded := make(chan error, 1)
		go func() { reloaded <- w.rt.Catalog().Reload(context.Background()) }()
		s := mcpserver.New(w.rt, nil)
		if err := <-reloaded; err != nil {
			t.Fatal(err)
		}
		other := &world{dir: w.dir, rt: w.rt, server: s}
		c := other.connect(t, way{"stdio", legacy}, nil)
		if list, err := c.ListPrompts(c.ctx, nil); err != nil || len(list.Prompts) != 2 {
			t.Fatalf("try %d: prompts %+v, %v; want both", i, list.Prompts, err)
		}
		c.Close()
		s.Close()
	}
}
