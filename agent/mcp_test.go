package agent_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
)

// A server of the program reports the progress of calls. Its images are
// limited, because each later request includes them.
func TestServerTools(t *testing.T) {
	reported := make(chan string, 1)
	received := make(chan struct{})
	srv := mcp.NewServer(&mcp.Implementation{Name: "camera", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "shoot"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "focusing"}); err != nil {
			return nil, nil, err
		}
		<-received // otherwise the result may arrive first
		res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "text/html,<script>", Data: []byte("x")}}}
		for range 12 {
			res.Content = append(res.Content, &mcp.ImageContent{MIMEType: "image/png", Data: bytes.Repeat([]byte("x"), 400<<10)})
		}
		return res, nil, nil
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "other"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	c, err := agent.Connect(t.Context(), connected{srv}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.Tools(t.Context(), "other")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	tk := newTalkWith(t, nil, &agent.Options{Tools: all}, calls(llm.Call{ID: "1", Name: "shoot"}), says("done"))
	if err := tk.RunTurn(t.Context(), "Shoot.", func(e agent.Event) {
		if e.Type == agent.ToolProgress {
			reported <- e.Text
			close(received)
		}
	}); err != nil {
		t.Fatal(err)
	}
	r := tk.model.requests[1].Messages[2].Parts[0].(llm.Result)
	images, size := 0, 0
	for _, p := range r.Parts {
		if i, ok := p.(llm.Image); ok {
			images++
			size += len(i.Data)
		}
	}
	text := string(r.Parts[0].(llm.Text))
	if images != 8 || size > 5<<20 || !strings.Contains(text, `of type "text/html`) || strings.Count(text, "not shown") != 5 {
		t.Errorf("%d pictures of %d bytes: %q", images, size, text)
	}
	if got := <-reported; got != "focusing" {
		t.Errorf("got %q", got)
	}
}

// connected is an in-process server.
type connected struct{ *mcp.Server }

func (c connected) Run(ctx context.Context, t mcp.Transport) error { return c.Server.Run(ctx, t) }
