package mcpserver

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Skills are not registered with the SDK's server as resources and prompts.
// serveSkills answers from the current view, so that a server costs the same
// for any number of skills.

// listPage is the maximum number of skills in a page of resources/list and
// prompts/list.
const listPage = 1000

// skillCursor is the prefix of cursors for pages that contain only skills. All
// other cursors are created by the SDK.
const skillCursor = "skills-"

// serveSkills adds the skills to the lists of resources and prompts, and answers
// prompts/get for skills.
func (s *Server) serveSkills(next mcp.MethodHandler) mcp.MethodHandler {
	if s.opts.ToolsOnly {
		return next
	}
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "resources/list":
			return s.listResources(ctx, req.(*mcp.ListResourcesRequest), next)
		case "prompts/list":
			return s.listPrompts(ctx, req.(*mcp.ListPromptsRequest), next)
		case "prompts/get":
			get := req.(*mcp.GetPromptRequest)
			if e := s.view().promptSkill(get.Params.Name); e != nil {
				res, err := s.getPrompt(ctx, e, typedArguments(newPrompt(e), get.Params.Arguments))
				if err != nil {
					return nil, err
				}
				if get.ProtocolVersion() >= rpcmessage.ModernVersion {
					res = completePrompt(res)
				}
				return res, nil
			}
		}
		return next(ctx, method, req)
	}
}

// completePrompt returns a copy of p with the result type "complete", which the
// modern protocol requires. The SDK sets the type only in the results of its
// own prompts and in results that it decodes.
func completePrompt(p *mcp.GetPromptResult) *mcp.GetPromptResult {
	res := &mcp.GetPromptResult{}
	if err := json.Unmarshal([]byte(`{"resultType":"complete","messages":[]}`), res); err != nil {
		return p
	}
	res.Meta, res.Description, res.Messages = p.Meta, p.Description, p.Messages
	return res
}

// listResources appends the resources of skills to those of the SDK's server.
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest, next mcp.MethodHandler) (mcp.Result, error) {
	var cursor string
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	skip, ours, err := skillOffset(cursor)
	if err != nil {
		return nil, err
	}
	if ours {
		setCacheable(ctx, req, &res.Cacheable)
	} else {
		first, err := next(ctx, "resources/list", req)
		list, ok := first.(*mcp.ListResourcesResult)
		if err != nil || !ok || list.NextCursor != "" {
			return first, err
		}
		res = list
	}
	v := s.view()
	page, rest := pageOf(v.served(), skip, listPage-len(res.Resources))
	for _, e := range page {
		res.Resources = append(res.Resources, v.resource(e))
	}
	if rest != "" {
		res.NextCursor = skillCursor + rest
	}
	return res, nil
}

// listPrompts appends the prompts of skills to those of the SDK's server.
func (s *Server) listPrompts(ctx context.Context, req *mcp.ListPromptsRequest, next mcp.MethodHandler) (mcp.Result, error) {
	var cursor string
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	v, res := s.view(), &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}}
	skip, ours, err := skillOffset(cursor)
	if err != nil {
		return nil, err
	}
	if ours {
		setCacheable(ctx, req, &res.Cacheable)
	} else {
		first, err := next(ctx, "prompts/list", req)
		list, ok := first.(*mcp.ListPromptsResult)
		if err != nil || !ok || list.NextCursor != "" {
			return first, err
		}
		list.Prompts = slices.DeleteFunc(list.Prompts, func(p *mcp.Prompt) bool { return p.Name == changedPrompt || v.promptSkill(p.Name) != nil })
		res = list
	}
	page, rest := pageOf(v.prompts(), skip, listPage-len(res.Prompts))
	for _, e := range page {
		res.Prompts = append(res.Prompts, newPrompt(e))
	}
	if rest != "" {
		res.NextCursor = skillCursor + rest
	}
	return res, nil
}

// skillOffset returns the number of skills that precede the page to which a
// cursor refers. ours is false if the cursor is empty or was created by the
// SDK.
func skillOffset(cursor string) (skip int, ours bool, err error) {
	encoded, ours := strings.CutPrefix(cursor, skillCursor)
	if !ours {
		return 0, false, nil
	}
	if skip, err = decodeCursor(encoded); err != nil {
		return 0, true, rpcmessage.InvalidParams("%v", err)
	}
	return skip, true, nil
}

// pageOf skips the given number of skills and returns up to limit of the
// following ones, and the cursor of the next page.
func pageOf(all iter.Seq[*catalog.Entry], skip, limit int) (page []*catalog.Entry, next string) {
	i := 0
	for e := range all {
		switch i++; {
		case i <= skip:
		case len(page) < limit:
			page = append(page, e)
		default:
			return page, encodeCursor(i - 1)
		}
	}
	return page, ""
}

// resource returns the resource of a skill, which is its SKILL.md. The Skills
// extension requires the description from the frontmatter, so no mark of the
// skill's origin is added.
func (v *view) resource(e *catalog.Entry) *mcp.Resource {
	return &mcp.Resource{URI: v.uriOf(e) + "/" + skill.FileName, Name: untrusted.New(e.Name).ForModel(), Title: untrusted.New(e.DisplayName).ForModel(),
		Description: untrusted.New(e.Description).ForModelLines(), MIMEType: "text/markdown"}
}

// newPrompt returns the prompt of a skill. It has no title, because clients
// that turn prompts into commands would use the title as the command's name,
// and a name with spaces cannot be typed.
func newPrompt(e *catalog.Entry) *mcp.Prompt {
	return &mcp.Prompt{Name: promptName(e), Description: untrusted.MarkOrigin(e.Scope.String(), untrusted.New(e.Description).ForModel()), Arguments: promptArguments(e)}
}

// prompts yields the skills that users may invoke, one for each prompt name.
func (v *view) prompts() iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		seen := map[string]bool{}
		for e := range v.snap.Visible() {
			name := promptName(e)
			if !e.UserInvocable || seen[name] {
				continue
			}
			seen[name] = true
			if !yield(e) {
				return
			}
		}
	}
}

// promptSkill returns the skill with the given prompt name, or nil.
func (v *view) promptSkill(name string) *catalog.Entry {
	if e := v.snap.ByName(name); e != nil && e.UserInvocable && promptName(e) == name {
		return e
	}
	for e := range v.snap.Visible() { // the name has spaces or hidden characters
		if e.UserInvocable && promptName(e) == name {
			return e
		}
	}
	return nil
}

// changedPrompt is a prompt that is added to the SDK server and immediately
// removed, because the SDK announces only changes to the prompts registered
// with it.
const changedPrompt = "loadout-changed"

// notifyLists notifies the clients if the lists of resources or prompts
// changed. To notify them of changed resources, it adds the template of skill
// files again.
func (s *Server) notifyLists(sdk *mcp.Server, before, now *catalog.Snapshot) {
	if !slices.Equal(slices.Collect(before.All()), slices.Collect(now.All())) {
		sdk.AddResourceTemplate(skillTemplate, readResource)
	}
	if !slices.Equal(before.Skills(), now.Skills()) {
		sdk.AddPrompt(&mcp.Prompt{Name: changedPrompt}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, rpcmessage.InvalidParams("unknown prompt %q", changedPrompt)
		})
		sdk.RemovePrompts(changedPrompt)
	}
}
