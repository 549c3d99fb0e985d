package mcpserver

import (
	"context"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// promptName is the name of a skill as a command can have it.
func promptName(e *catalog.Entry) string { return strings.Join(strings.Fields(e.Name), "-") }

// hinted matches the arguments in a hint such as "[issue] <priority>".
var hinted = regexp.MustCompile(`\[([^\[\]<>]+)\]|<([^\[\]<>]+)>`)

// promptArguments are those that the hint of a skill names, where there are
// several, else one for all: clients that split what a person types at spaces
// fill one after another, and drop what is left.
func promptArguments(e *catalog.Entry) []*mcp.PromptArgument {
	hint := e.ArgumentHint
	if hint == "" {
		hint = "what to do with the skill"
	}
	all := []*mcp.PromptArgument{{Name: "arguments", Description: hint}}
	parts := hinted.FindAllStringSubmatch(e.ArgumentHint, -1)
	if len(parts) < 2 || strings.TrimSpace(hinted.ReplaceAllString(e.ArgumentHint, "")) != "" {
		return all
	}
	var each []*mcp.PromptArgument
	seen := map[string]bool{}
	for _, part := range parts {
		name := skill.Slug(part[1] + part[2])
		if name == "" || seen[name] {
			return all
		}
		seen[name] = true
		each = append(each, &mcp.PromptArgument{Name: name, Description: part[0]})
	}
	return each
}

// typed is what a person gave for the arguments of a prompt, in order.
func typed(p *mcp.Prompt, given map[string]string) []string {
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

// prompt is a skill that a person chose, with what they typed after its name.
func (s *Server) prompt(ctx context.Context, e *catalog.Entry, arguments []string) (*mcp.GetPromptResult, error) {
	all, err := s.fetchEntry(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, invalid("%s", s.explain(err))
	}
	s.usedLoad(all)
	m := all[len(all)-1]
	var rest string
	m.Instructions, rest = session.FillArguments(m.Instructions, arguments, e.ArgumentHint != "")
	var texts []string
	for _, m := range all {
		texts = append(texts, session.Render(m))
	}
	body := strings.Join(texts, "\n")
	if rest != "" {
		body += "\nArguments: " + rest + "\n"
	}
	return &mcp.GetPromptResult{Description: m.Title,
		Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: body}}}}, nil
}
