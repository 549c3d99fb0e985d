package assembly

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// diagramSkill is the skill in whose name the page of the hub is asked to draw.
const diagramSkill = "mermaid-diagrams"

// newDiagramTool is the tool by which a model has the person's page draw a diagram: it learns
// whether that renders, and where it does not. Without a page that is open it is told so.
func newDiagramTool(c *chat.ToolContext) agent.Tool {
	client := &agent.Client{Approvals: c.Approvals, Session: c.ID, Principal: c.User}
	tool := client.Tool(diagramSkill, llm.Tool{
		Name:        toolname.RenderMermaid,
		Description: "Draw a Mermaid diagram in the person's page. Says whether it renders, and where it does not, so that you mend it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"},"title":{"type":"string"}},"required":["code"]}`),
	})
	tool.Repeatable, tool.ReadOnly = true, true // nothing stays of it
	draw := tool.Call
	tool.Call = func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
		out, err := draw(ctx, args)
		if err == nil && !out.Error {
			out = &agent.Outcome{Text: "It renders, and is shown to the person."} // the picture says nothing to a model
		}
		return out, err
	}
	return tool
}
