package mcpserver

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
)

// promptName returns the skill's name without spaces, for use as a command
// name.
func promptName(e *catalog.Entry) string {
	return strings.Join(strings.Fields(untrusted.New(e.Name).ForModel()), "-")
}

// hintedArgument matches an argument in a hint such as "[issue] <priority>".
var hintedArgument = lazyregexp.New(`\[([^\[\]<>]+)\]|<([^\[\]<>]+)>`)

// promptArguments returns the arguments of a skill's prompt: those named in the
// skill's argument hint if there are several, and a single argument otherwise.
// Clients that split input at spaces assign the words to the arguments in order
// and drop the remaining words.
func promptArguments(e *catalog.Entry) []*mcp.PromptArgument {
	hint := untrusted.New(e.ArgumentHint).ForModel()
	parts := hintedArgument.FindAllStringSubmatch(hint, -1)
	rest := strings.TrimSpace(hintedArgument.ReplaceAllString(hint, ""))
	if hint == "" {
		hint = "what to do with the skill"
	}
	all := []*mcp.PromptArgument{{Name: "arguments", Description: hint}}
	if len(parts) < 2 || rest != "" {
		return all
	}
	var each []*mcp.PromptArgument
	seen := map[string]bool{}
	for _, part := range parts {
		name := skillname.Slug(part[1] + part[2])
		if name == "" || seen[name] {
			return all
		}
		seen[name] = true
		each = append(each, &mcp.PromptArgument{Name: name, Description: part[0]})
	}
	return each
}

// typedArguments returns the given values in the order of the prompt's
// arguments.
func typedArguments(p *mcp.Prompt, given map[string]string) []string {
	if one, ok := given["arguments"]; ok {
		return []string{one}
	}
	var out []string
	for _, a := range p.Arguments {
		out = append(out, given[a.Name])
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// getPrompt returns the prompt for a skill that a user invoked with arguments.
func (s *Server) getPrompt(ctx context.Context, e *catalog.Entry, arguments []string) (*mcp.GetPromptResult, error) {
	all, err := s.fetchEntry(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
			return nil, rpcmessage.InvalidParams("%s", s.refusalText(refused))
		}
		return nil, rpcmessage.InvalidParams("%s", s.errorText(err))
	}
	s.reportLoad(ctx, all)
	m := all[len(all)-1]
	var rest string
	m.Instructions, rest = skilltext.FillArguments(m.Instructions, arguments, e.ArgumentHint != "")
	var texts []string
	for _, m := range all {
		texts = append(texts, session.Render(m))
	}
	body := strings.Join(texts, "\n")
	if rest != "" {
		body += "\nArguments: " + rest + "\n"
	}
	return &mcp.GetPromptResult{Description: untrusted.New(m.Title).ForModel(),
		Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: body}}}}, nil
}
