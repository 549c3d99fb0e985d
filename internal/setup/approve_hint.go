package setup

import (
	"errors"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/tools"
)

// ApproveHint returns the command that approves the skill that e is about. If
// approval would not help, it returns the error's own hint. In managed mode,
// the command shows what the administrator can approve.
func (s *Setup) ApproveHint(e *loadout.RefusedError) string {
	dryRun, command := "", "loadout approve"
	flags := s.SkillFlags()
	if dir := s.RootOf(e.Skill); dir != "" && e.Call == nil {
		command, flags = inDirectory(dir, command), quoteArgs(s.SkillArgsIn(dir))
	}
	if s.IsManaged() {
		dryRun = " --dry-run" // shows what the administrator approves
	}
	switch {
	case e.Call != nil || !e.NeedsApproval:
		return e.Decision.Hint
	case strings.HasPrefix(e.Skill, "-"): // would be parsed as a flag
		return command + dryRun + flags + " -- " + console.ShellQuote(e.Skill)
	}
	return command + " " + console.ShellQuote(e.Skill) + dryRun + flags
}

// HowToApprove returns text for an MCP client that says how the user can
// approve the skill or the call that err is about. The text is a verb phrase that
// follows "The user can", or it starts with "to". It is "" if err is neither a
// [*loadout.RefusedError] nor a [*tools.NotReadOnlyError] that an approval
// would prevent.
func (s *Setup) HowToApprove(err error) string {
	if e, ok := errors.AsType[*tools.NotReadOnlyError](err); ok && e.Approvable && !s.IsManaged() {
		return s.approveCommand(e.Tool.Name)
	}
	e, ok := errors.AsType[*loadout.RefusedError](err)
	switch {
	case !ok:
		return ""
	case e.Call != nil && e.Decision.Code == decision.ServedSkill: // approving the tool does not help
		return e.Decision.Hint
	case e.Call != nil && e.NeedsApproval && s.IsManaged():
		return "ask an administrator for a rule that allows it: policy.rules in " + s.operatorFile()
	case e.Call != nil && e.NeedsApproval && e.Call.Tool != "":
		return s.approveCommand(e.Call.Tool)
	case e.Call != nil && e.Decision.Code == decision.ByRule:
		return "to find the rule: loadout config show"
	case e.Call == nil && e.NeedsApproval && s.IsManaged():
		return "run `" + s.ApproveHint(e) + "` to see what an administrator must approve"
	case e.Call == nil && e.NeedsApproval:
		return "run `" + s.ApproveHint(e) + "` in their own terminal, after a review"
	}
	return e.Decision.Hint
}

// approveCommand returns text that completes "The user can" and contains the
// command that approves a tool.
func (s *Setup) approveCommand(tool string) string {
	return "run `loadout approve " + console.ShellQuote(tool) + s.SkillFlags() + "` in their own terminal"
}

// RevokeCommand returns the command that revokes the permission to call a tool.
func RevokeCommand(tool string) string { return "loadout approve --revoke " + tool }
