package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func addPrompts(s *mcp.Server) {
	for _, p := range []struct {
		name, description string
		arguments         []*mcp.PromptArgument
		messages          func(args map[string]string) []mcp.Content
	}{
		{"test_simple_prompt", "A prompt without arguments.", nil,
			func(map[string]string) []mcp.Content {
				return []mcp.Content{&mcp.TextContent{Text: "This is a simple prompt for testing."}}
			}},
		{"test_prompt_with_arguments", "A prompt with two arguments.", required("arg1", "arg2"),
			func(args map[string]string) []mcp.Content {
				return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])}}
			}},
		{"test_prompt_with_embedded_resource", "A prompt with a resource in it.", required("resourceUri"),
			func(args map[string]string) []mcp.Content {
				return []mcp.Content{embed(args["resourceUri"], "text/plain", "Embedded resource content for testing."),
					&mcp.TextContent{Text: "Please process the embedded resource above."}}
			}},
		{"test_prompt_with_image", "A prompt with a picture in it.", nil,
			func(map[string]string) []mcp.Content {
				return []mcp.Content{&mcp.ImageContent{Data: redPixel, MIMEType: "image/png"},
					&mcp.TextContent{Text: "Please analyze the image above."}}
			}},
	} {
		s.AddPrompt(&mcp.Prompt{Name: p.name, Description: p.description, Arguments: p.arguments},
			func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return newPromptResult(p.messages(req.Params.Arguments)...), nil
			})
	}
	d := promptDialogue()
	s.AddPrompt(&mcp.Prompt{Name: d.name, Description: d.description}, d.prompt)
}

func required(names ...string) []*mcp.PromptArgument {
	var out []*mcp.PromptArgument
	for _, n := range names {
		out = append(out, &mcp.PromptArgument{Name: n, Description: "some text", Required: true})
	}
	return out
}

// newPromptResult returns a prompt result with a user message for each content.
func newPromptResult(contents ...mcp.Content) *mcp.GetPromptResult {
	res := &mcp.GetPromptResult{}
	for _, c := range contents {
		res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
	}
	return res
}

// complete suggests words for the arguments of prompts.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	words := slices.DeleteFunc([]string{"paris", "park", "party", "test"}, func(w string) bool {
		return !strings.HasPrefix(w, req.Params.Argument.Value)
	})
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: words, Total: len(words)}}, nil
}
