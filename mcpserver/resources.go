package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// offer records the resource and prompt registered with the SDK for a skill.
type offer struct {
	entry  *catalog.Entry
	uri    string // URI of SKILL.md as a resource; "" for none
	prompt string // name of the prompt; "" for none
}

// syncOffers updates the SDK server's resources and prompts to match the view.
// The SDK notifies clients of the changes. The caller must hold s.mu.
func (s *Server) syncOffers(v *view) {
	want := map[string]*offer{}
	for _, e := range v.entries {
		want[e.Key()] = &offer{entry: e, uri: v.uriOf(e.Key()) + "/" + skill.FileName}
	}
	prompts := map[string]bool{}
	for _, e := range v.snap.Skills() {
		name := promptName(e)
		if !e.UserInvocable || prompts[name] {
			continue
		}
		prompts[name] = true
		o := want[e.Key()]
		if o == nil {
			o = &offer{entry: e}
			want[e.Key()] = o
		}
		o.prompt = name
	}
	var goneURIs, gonePrompts []string
	for key, old := range s.offered {
		now := want[key]
		if old.uri != "" && (now == nil || now.uri != old.uri) {
			goneURIs = append(goneURIs, old.uri)
		}
		if old.prompt != "" && (now == nil || now.prompt != old.prompt) {
			gonePrompts = append(gonePrompts, old.prompt)
		}
	}
	if len(goneURIs) > 0 {
		s.sdk.RemoveResources(goneURIs...)
	}
	if len(gonePrompts) > 0 {
		s.sdk.RemovePrompts(gonePrompts...)
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
	e, description := o.entry, untrusted.New(o.entry.Description)
	if o.uri != "" {
		// The Skills extension requires the description of the frontmatter, so
		// it has no mark of the origin.
		s.sdk.AddResource(&mcp.Resource{URI: o.uri, Name: untrusted.New(e.Name).ForModel(), Title: untrusted.New(e.DisplayName).ForModel(), Description: description.ForModelLines(), MIMEType: "text/markdown"}, s.readResource)
	}
	if o.prompt != "" {
		// No title: clients that turn prompts into commands use it as the
		// command's name, and a name with spaces cannot be typed.
		p := &mcp.Prompt{Name: o.prompt, Description: untrusted.MarkOrigin(e.Scope.String(), description.ForModel()), Arguments: promptArguments(e)}
		s.sdk.AddPrompt(p, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return s.getPrompt(ctx, e, typedArguments(p, req.Params.Arguments))
		})
	}
}
