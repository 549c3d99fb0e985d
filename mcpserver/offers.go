package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// offer is what the SDK's server was given for one skill.
type offer struct {
	entry  *catalog.Entry
	uri    string // of SKILL.md as a resource, "" for none
	prompt string // name of the prompt, "" for none
}

// syncOffers brings the resources and prompts of the SDK's server in line with
// the view. The SDK announces what changes. s.mu is held.
func (s *Server) syncOffers(v *view) {
	want := map[string]*offer{}
	for _, e := range v.entries {
		want[e.Key()] = &offer{entry: e, uri: v.uriOf(e.Key()) + "/" + skill.FileName}
	}
	for _, e := range v.snap.Skills() {
		if !e.UserInvocable {
			continue
		}
		o := want[e.Key()]
		if o == nil {
			o = &offer{entry: e}
			want[e.Key()] = o
		}
		o.prompt = e.Name
	}
	var uris, prompts []string
	for key, old := range s.offered {
		now := want[key]
		if now == nil || now.uri != old.uri && old.uri != "" {
			uris = append(uris, old.uri)
		}
		if old.prompt != "" && (now == nil || now.prompt != old.prompt) {
			prompts = append(prompts, old.prompt)
		}
	}
	if len(uris) > 0 {
		s.sdk.RemoveResources(uris...)
	}
	if len(prompts) > 0 {
		s.sdk.RemovePrompts(prompts...)
	}
	for key, o := range want {
		old := s.offered[key]
		if old != nil && old.entry == o.entry && old.uri == o.uri && old.prompt == o.prompt {
			continue
		}
		s.addOffer(o)
	}
	s.offered = want
}

func (s *Server) addOffer(o *offer) {
	e := o.entry
	if o.uri != "" {
		s.sdk.AddResource(&mcp.Resource{URI: o.uri, Name: e.Name, Title: e.DisplayName, Description: e.Description, MIMEType: "text/markdown"}, s.readResource)
	}
	if o.prompt != "" {
		p := &mcp.Prompt{Name: o.prompt, Title: e.DisplayName, Description: e.Description}
		hint := e.ArgumentHint
		if hint == "" {
			hint = "what to do with the skill"
		}
		p.Arguments = []*mcp.PromptArgument{{Name: "arguments", Description: hint}}
		s.sdk.AddPrompt(p, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return s.prompt(ctx, e.Key(), req.Params.Arguments["arguments"])
		})
	}
}

// prompt is a skill that a person chose, with what they typed after its name.
func (s *Server) prompt(ctx context.Context, key, arguments string) (*mcp.GetPromptResult, error) {
	all, err := s.rt.Fetch(ctx, key)
	if err != nil {
		return nil, invalid("%v", err)
	}
	m := all[len(all)-1]
	var texts []string
	for _, m := range all {
		m.Location = s.location(m)
		if m == all[len(all)-1] {
			m.Instructions, arguments = fillArguments(m.Instructions, arguments)
		}
		texts = append(texts, session.Render(m))
	}
	body := strings.Join(texts, "\n")
	if arguments != "" {
		body += "\nArguments: " + arguments + "\n"
	}
	return &mcp.GetPromptResult{Description: m.Title,
		Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: body}}}}, nil
}

// fillArguments puts what a person typed where the author wrote $ARGUMENTS, $1
// and so on, and returns what the author left no place for.
func fillArguments(body, arguments string) (filled, rest string) {
	if !strings.Contains(body, "$ARGUMENTS") && !strings.Contains(body, "$1") {
		return body, arguments
	}
	words := strings.Fields(arguments)
	pairs := []string{"$ARGUMENTS", arguments}
	for i := 9; i >= 1; i-- {
		word := ""
		if i <= len(words) {
			word = words[i-1]
		}
		pairs = append(pairs, fmt.Sprintf("$%d", i), word)
	}
	return strings.NewReplacer(pairs...).Replace(body), ""
}
