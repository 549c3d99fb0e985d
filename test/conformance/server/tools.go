package main

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a test tool: its entry in the tool list and its result.
type tool struct {
	name, description string
	schema            string // of the arguments; "" for no arguments
	call              mcp.ToolHandler
}

const noArguments = `{"type": "object"}`

func addTools(s *mcp.Server) {
	for _, group := range [][]tool{contentTools(), noticeTools(), dialogueTools(), schemaTools(), changeTools(s)} {
		for _, t := range group {
			addTool(s, t)
		}
	}
}

func addTool(s *mcp.Server, t tool) {
	if t.schema == "" {
		t.schema = noArguments
	}
	s.AddTool(&mcp.Tool{Name: t.name, Description: t.description, InputSchema: json.RawMessage(t.schema)}, t.call)
}

// say returns a result with a single text item.
func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
