package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// DescribeAlternatives returns a text for the model that lists up to three
// tools that may replace the tool of the failed call c; see [Set.Alternatives].
// err is the error from [Set.Call] or [Set.Authorize]. The text is empty if
// there are none, if the user declined the call, or if the model can correct
// it. If the call was refused because nobody could approve it, tools that need
// approval are omitted.
func (s *Set) DescribeAlternatives(ctx context.Context, err error, c *Call) string {
	others := s.alternativesTo(ctx, err, c)
	if len(others) == 0 {
		return ""
	}
	all := make([]skilltext.Tool, len(others))
	for i, t := range others {
		all[i] = skilltext.Tool{Name: t.Name, Description: shortText(untrusted.New(t.Definition.Description).ForModel()),
			Server: t.Server, State: string(t.State), NeedsApproval: t.NeedsApproval, ReadOnly: t.ReadOnly}
	}
	var b strings.Builder
	b.WriteString("\nTools that may do instead:\n")
	skilltext.WriteTools(&b, all, false)
	return b.String()
}

func (s *Set) alternativesTo(ctx context.Context, err error, c *Call) []Tool {
	var name string
	refused, isRefused := errors.AsType[*loadout.RefusedError](err)
	if failed, ok := errors.AsType[*FailedError](err); ok {
		name = failed.Tool.Name
	} else if unknown, ok := errors.AsType[*UnknownToolError](err); ok {
		name = unknown.Name
	} else if isRefused && refused.Call != nil && !refused.Declined() {
		name = refused.Call.Tool
	}
	if name == "" {
		return nil
	}
	others := s.Alternatives(name)
	s.ResolveApprovals(ctx, others, c)
	if isRefused && refused.NeedsApproval {
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
