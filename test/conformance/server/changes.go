package main

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// changeTools returns tools that change the server's lists, so that the server
// notifies its clients.
func changeTools(s *mcp.Server) []tool {
	const name = "test_comes_and_goes"
	return []tool{
		{name: "test_trigger_tool_change", description: "Adds a tool, or removes it again.", call: toggle(
			func() {
				addTool(s, tool{name: name, description: "Is there at times.",
					call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return say("I am here now."), nil
					}})
			},
			func() { s.RemoveTools(name) })},
		{name: "test_trigger_prompt_change", description: "Adds a prompt, or removes it again.", call: toggle(
			func() {
				s.AddPrompt(&mcp.Prompt{Name: name, Description: "Is there at times."},
					func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
						return newPromptResult(&mcp.TextContent{Text: "I am here now."}), nil
					})
			},
			func() { s.RemovePrompts(name) })},
	}
}

// toggle returns a handler that alternates between do and undo.
func toggle(do, undo func()) mcp.ToolHandler {
	var mu sync.Mutex // guards done
	done := false
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		done = !done
		if done {
			do()
			return say("Added."), nil
		}
		undo()
		return say("Removed."), nil
	}
}
