package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// DescribeAlternatives returns a text for the model that lists up to three tools
// that may replace the tool of the failed call c; see [Set.Alternatives]. err
// is the error from [Set.Call] or [Set.Authorize], or nil if the tool returned an
// error result. The text is empty if there are none, if the user declined the
// call, or if the model can correct it. If the call was refused because nobody
// could approve it, tools that need approval are omitted.
func (s *Set) DescribeAlternatives(ctx context.Context, err error, c *Call) string {
	return describeTools(s.alternativesTo(ctx, err, c))
}

// DescribeSkillAlternatives returns a text for the model about a skill that could
// not be loaded, or whose script failed. It lists up to three similar skills that
// the model may load, and up to three similar tools, in the form of
// [Set.DescribeAlternatives]. ref is the skill's name, or another reference that
// the model used. err is the reason for the failure, or nil. c identifies the
// caller. The text is empty if there are no alternatives, if the user declined,
// or if skills are disabled. It omits skills that the error for an unknown ref
// already suggests, and the tools that DescribeAlternatives omits.
func (s *Set) DescribeSkillAlternatives(ctx context.Context, ref string, err error, c *Call) string {
	refused, isRefused := errors.AsType[*loadout.RefusedError](err)
	if isRefused && refused.Declined() || s.rt.Catalog().Snapshot().Disabled {
		return ""
	}
	name, skills := s.similarSkills(ctx, ref)
	var b strings.Builder
	if len(skills) > 0 {
		b.WriteString("\nOther skills to try:\n")
	}
	for _, e := range skills {
		b.WriteString("- " + untrusted.New(e.Name).ForModel() + ": " + untrusted.MarkOrigin(e.Scope.String(), shortText(untrusted.New(e.Description).ForModel())) + "\n")
	}
	return b.String() + describeTools(s.usableAlternatives(ctx, name, isRefused && refused.NeedsApproval, c))
}

// maxSkillRef is the maximum length, in characters, of a search for a skill
// reference written by a model. The rest of the reference is ignored.
const maxSkillRef = 100

// similarSkills returns the name of the skill with the given reference, and up to
// three other skills that a model may load and that seem to do similar things. It
// ignores the description of a named skill that the model may not load.
func (s *Set) similarSkills(ctx context.Context, ref string) (name string, out []*catalog.Entry) {
	if r := []rune(ref); len(r) > maxSkillRef {
		ref = string(r[:maxSkillRef])
	}
	failed, err := s.rt.Catalog().Resolve(ctx, ref)
	like := &mcp.Tool{Name: ref}
	if err == nil {
		like.Name = failed.Name
	}
	if err == nil && !failed.DisableModelInvocation {
		like.Description = failed.Description
	}
	var suggested []string
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		suggested = missing.Suggestions
	}
	const searched, most = 20, 3
	hits, err := s.rt.Catalog().Search(ctx, strings.Join(words(like.Name), " ")+" "+like.Description, catalog.SearchOptions{Limit: searched, ForModel: true})
	if err != nil { // the failure itself matters more
		return like.Name, nil
	}
	for _, h := range hits {
		other := &mcp.Tool{Name: h.Name, Description: h.Description}
		if len(out) < most && h.Name != like.Name && !slices.Contains(suggested, h.Name) && (areSimilar(other, like) || areSimilar(like, other)) {
			out = append(out, h.Entry)
		}
	}
	return like.Name, out
}

func describeTools(others []Tool) string {
	if len(others) == 0 {
		return ""
	}
	all := make([]skilltext.Tool, len(others))
	for i, t := range others {
		all[i] = skilltext.Tool{Name: t.Name, Description: shortText(untrusted.New(t.Definition.Description).ForModel()),
			Server: t.Server, State: string(t.State), NeedsApproval: t.NeedsApproval, ReadOnly: t.ReadOnly}
	}
	var b strings.Builder
	b.WriteString("\nOther tools to try:\n")
	skilltext.WriteTools(&b, all, false)
	return b.String()
}

func (s *Set) alternativesTo(ctx context.Context, err error, c *Call) []Tool {
	var name string
	refused, isRefused := errors.AsType[*loadout.RefusedError](err)
	if err == nil {
		name = c.Name
	} else if failed, ok := errors.AsType[*FailedError](err); ok {
		name = failed.Tool.Name
	} else if unknown, ok := errors.AsType[*UnknownToolError](err); ok {
		name = unknown.Name
	} else if isRefused && refused.Call != nil && !refused.Declined() {
		name = refused.Call.Tool
	}
	if name == "" {
		return nil
	}
	return s.usableAlternatives(ctx, name, isRefused && refused.NeedsApproval, c)
}

// usableAlternatives returns the alternatives to a tool. If nobody can approve
// calls like c, it omits those that need approval.
func (s *Set) usableAlternatives(ctx context.Context, name string, unapprovable bool, c *Call) []Tool {
	others := s.Alternatives(name)
	s.ResolveApprovals(ctx, others, c)
	if unapprovable {
		others = slices.DeleteFunc(others, func(t Tool) bool { return t.NeedsApproval })
	}
	return others
}

// shortText truncates a description to 160 characters.
func shortText(s string) string {
	const most = 160
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
