package assembly

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// diagramSkill is the name of the skill that provides the drawing tool.
const diagramSkill = "mermaid-diagrams"

// newDiagramTool returns a tool that draws a diagram in the user's browser and
// reports whether the browser could render it. Calls fail if the user has no
// page open.
func newDiagramTool(c *chat.ToolContext) agent.Tool {
	client := &clientaction.Client{Approvals: c.Approvals, Session: c.ID, Principal: c.User}
	tool := client.Tool(diagramSkill, llm.Tool{
		Name:        toolname.RenderMermaid,
		Description: "Draw a Mermaid diagram in the user's page. Returns whether it renders, and the position of errors so that you can fix them.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"},"title":{"type":"string"}},"required":["code"]}`),
	})
	tool.Repeatable, tool.ReadOnly = true, true // drawing has no lasting effect
	draw := tool.Call
	tool.Call = func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
		out, err := draw(ctx, args)
		if err == nil && !out.Error {
			out = &agent.Outcome{Text: "The diagram renders and is shown to the user."} // the model does not need the picture
		}
		return out, err
	}
	return tool
}
