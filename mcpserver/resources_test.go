package mcpserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Pages contain each resource and prompt once: first those of the embedding
// program, then those of the skills.
func TestListsHavePages(t *testing.T) {
	tree := files{}
	for i := range 1100 {
		name := fmt.Sprintf("skill-%04d", i)
		tree[name+"/SKILL.md"] = skillText(name, "x\n")
	}
	none := func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "of the program"}, nil
	}
	w := newWorld(t, setup{tree: tree, options: mcpserver.Options{Extend: func(s *mcp.Server) {
		s.AddResource(&mcp.Resource{URI: "extra:a", Name: "a"}, nil)
		s.AddPrompt(&mcp.Prompt{Name: "extra"}, none)
		s.AddPrompt(&mcp.Prompt{Name: "skill-0001"}, none) // the skill takes precedence
	}}})
	for _, how := range ways {
		t.Run(how.String(), func(t *testing.T) {
			c := w.connect(t, how, nil)
			resources, prompts, pages := map[string]int{}, map[string]int{}, 0
			for at := ""; ; pages++ {
				res, err := c.ListResources(c.ctx, &mcp.ListResourcesParams{Cursor: at})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range res.Resources {
					resources[r.URI]++
				}
				if at = res.NextCursor; at == "" {
					break
				}
			}
			for at := ""; ; pages++ {
				res, err := c.ListPrompts(c.ctx, &mcp.ListPromptsParams{Cursor: at})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range res.Prompts {
					prompts[p.Name]++
				}
				if at = res.NextCursor; at == "" {
					break
				}
			}
			if len(resources) != 1101 || len(prompts) != 1101 || pages != 2 {
				t.Errorf("%d resources and %d prompts on %d more pages", len(resources), len(prompts), pages)
			}
			for name, n := range prompts {
				if n != 1 || resources["extra:a"] != 1 {
					t.Fatalf("prompt %s is listed %d times", name, n)
				}
			}
			p, err := c.GetPrompt(c.ctx, &mcp.GetPromptParams{Name: "skill-0001"})
			if err != nil || p.Description == "of the program" {
				t.Errorf("prompt of the skill: %v, %v", p, err)
			}
			raw := w.begin(t, how).ok("prompts/get", args{"name": "skill-0001"})
			if modernEra := how.version >= modern; modernEra != strings.Contains(string(raw), `"resultType":"complete"`) {
				t.Errorf("prompts/get %s", raw)
			}
			if _, err := c.ListPrompts(c.ctx, &mcp.ListPromptsParams{Cursor: "skills-?"}); err == nil {
				t.Error("an unknown cursor is accepted")
			}
		})
	}
}
