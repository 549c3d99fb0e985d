package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// skillCommands returns a command for each skill that the user may invoke. It
// omits skills that have the name or an alias of a built-in command.
func (t *dialog) skillCommands(ctx context.Context, own []terminal.Command) []terminal.Command {
	var out []terminal.Command
	for _, e := range t.runtime.Catalog().Snapshot().Skills() {
		taken := slices.ContainsFunc(own, func(k terminal.Command) bool { return k.Name == e.Name || slices.Contains(k.Aliases, e.Name) })
		if !e.UserInvocable || taken || strings.ContainsFunc(e.Name, func(r rune) bool { return unicode.IsSpace(r) || r == '/' }) {
			continue
		}
		out = append(out, terminal.Command{
			Name: e.Name, Args: terminal.Plain(e.ArgumentHint), Help: terminal.Clip(e.Description, 200),
			Files:  true,
			Detail: func() string { return t.skillDetail(ctx, e) },
			Run: func(ctx context.Context, args string, emit func(agent.Event)) (string, error) {
				return "", t.InvokeSkill(ctx, e.Key(), args, emit)
			},
		})
	}
	return out
}

// skillDetail returns one line with a skill's usage and tools.
func (t *dialog) skillDetail(ctx context.Context, e *catalog.Entry) string {
	var out []string
	if hint := terminal.Plain(e.ArgumentHint); hint != "" {
		out = append(out, "usage: /"+e.Name+" "+hint)
	}
	if tools := t.skillTools(ctx, e); len(tools) > 0 {
		out = append(out, "tools: "+strings.Join(tools, ", "))
	}
	return strings.Join(out, "; ")
}

// skillTools returns the names of the tools that a skill requests or provides.
func (t *dialog) skillTools(ctx context.Context, e *catalog.Entry) []string {
	s, _, err := t.runtime.Catalog().Read(ctx, e)
	if err != nil {
		return nil
	}
	out := slices.Clone(s.AllowedTools)
	for _, k := range s.Tools {
		out = append(out, k.Name)
	}
	return out
}

// skillScripts returns the paths of a skill's scripts.
func (t *dialog) skillScripts(ctx context.Context, e *catalog.Entry) []string {
	files, err := t.runtime.Catalog().Manifest(ctx, e)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		if f.Script {
			out = append(out, f.Path)
		}
	}
	return out
}

// skillHelp returns the description, tools and scripts of a skill.
func (t *dialog) skillHelp(ctx context.Context, name string) (string, error) {
	e, err := t.runtime.Catalog().Snapshot().Get(name)
	if err != nil {
		return "", unknownSkillError(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n%s\n\n", literal(cmp.Or(e.DisplayName, e.Name)), literal(e.Description))
	if hint := terminal.Plain(e.ArgumentHint); hint != "" && e.UserInvocable {
		fmt.Fprintf(&b, "- usage: `%s`\n", strings.ReplaceAll("/"+e.Name+" "+hint, "`", "'"))
	}
	if tools := t.skillTools(ctx, e); len(tools) > 0 {
		fmt.Fprintf(&b, "- tools: %s\n", literal(strings.Join(tools, ", ")))
	}
	if scripts := t.skillScripts(ctx, e); len(scripts) > 0 {
		fmt.Fprintf(&b, "- scripts: %s\n", literal(terminal.Clip(strings.Join(scripts, ", "), 500)))
	}
	if !e.UserInvocable {
		b.WriteString("- only the agent can invoke it; to load it yourself, use `/load`\n")
	}
	if e.DisableModelInvocation {
		b.WriteString("- only you can invoke it, not the agent\n")
	}
	from := e.Path
	if !strings.HasPrefix(from, e.Origin) {
		from = e.Origin + ": " + t.host.shortPath(from)
	}
	fmt.Fprintf(&b, "- from %s\n", literal(from))
	return b.String(), nil
}

// unknownSkillError adds a hint to the error for an unknown skill.
func unknownSkillError(err error) error {
	return exit.Errorf(exit.NotFound, "list the skills: /skills", "%w", err)
}

// listSkills lists all skills, with loaded skills first.
func (t *dialog) listSkills(context.Context, string) (string, error) {
	var b strings.Builder
	active := t.session.Active()
	if len(active) > 0 {
		b.WriteString("**Loaded**\n\n")
	}
	for _, k := range active {
		left, bounded := t.session.TurnsLeft(k.Skill)
		until := "until /unload"
		switch {
		case bounded && left == 0:
			until = "for this turn"
		case bounded:
			until = fmt.Sprintf("for %d more turns without use", left)
		}
		fmt.Fprintf(&b, "- %s, %s tokens, %s\n", literal(k.Skill.Name), terminal.FormatTokens(k.Tokens), until)
	}
	all := t.runtime.Catalog().Snapshot().Skills()
	if len(all) == 0 {
		return b.String() + "No skills yet. To create one: `loadout new NAME`\n", nil
	}
	fmt.Fprintf(&b, "\n**Skills** (%d)\n\n", len(all))
	const most = 60
	for i, e := range all {
		if i == most {
			fmt.Fprintf(&b, "\nand %d more: type / and the start of a name\n", len(all)-most)
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", literal(e.Name), literal(terminal.Clip(e.Description, 100)))
	}
	return b.String(), nil
}

// loadSkill loads a skill, which stays active until the user unloads it.
func (t *dialog) loadSkill(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", exit.Errorf(exit.Usage, "/load NAME; list the skills: /skills", "no skill name given")
	}
	r, err := t.session.Load(ctx, name, &session.LoadOptions{Retention: session.RetainPinned, Direct: true})
	if err != nil {
		return "", err
	}
	if r.State == session.StateFailed {
		if _, err := t.runtime.Catalog().Snapshot().Get(name); err != nil {
			return "", unknownSkillError(err)
		}
		if refused := setup.TextRefusal(ctx, t.runtime, name); refused != nil {
			return "", exit.Errorf(exit.Refused, "review it: "+t.host.ApproveHint(refused), "%w", refused)
		}
		return "", exit.Errorf(exit.Failure, "see: loadout show "+console.ShellQuote(name), "load %s: %s", name, strings.Join(r.Problems, "; "))
	}
	var b strings.Builder
	state := map[session.LoadState]string{session.StateAlreadyLoaded: "is already loaded", session.StateDegraded: "is loaded, but parts of it do not work"}[r.State]
	if state == "" {
		state = "is loaded"
	}
	fmt.Fprintf(&b, "%s %s, until `/unload`.\n", literal(r.Skill.ID.Name), state)
	if len(r.Problems) > 0 {
		b.WriteString("\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "- %s\n", literal(p))
	}
	return b.String(), nil
}

func (t *dialog) unloadSkill(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", exit.Errorf(exit.Usage, "/unload NAME; list the loaded skills: /skills", "no skill name given")
	}
	gone, err := t.session.Unload(ctx, name, "unloaded by the user", false)
	if needed := (*session.NeededByOthersError)(nil); errors.As(err, &needed) {
		return "", exit.Errorf(exit.Failure, "first unload the skills that need it", "%w", err)
	}
	if errors.Is(err, session.ErrNotLoaded) {
		return "", exit.Errorf(exit.NotFound, "list the loaded skills: /skills", "%w", err)
	}
	if err != nil {
		return "", err
	}
	return literal(strings.Join(gone, ", ")) + " is unloaded.\n", nil
}

// completeSkills returns the skills whose names start with a prefix.
func (t *dialog) completeSkills(prefix string) []terminal.Choice {
	var out []terminal.Choice
	for _, e := range t.runtime.Catalog().Snapshot().Skills() {
		if strings.HasPrefix(e.Name, prefix) {
			out = append(out, terminal.Choice{Name: e.Name, Help: terminal.Clip(e.Description, 200)})
		}
	}
	return out
}

func (t *dialog) completeLoaded(prefix string) []terminal.Choice {
	var out []terminal.Choice
	for _, k := range t.session.Active() {
		if strings.HasPrefix(k.Skill.Name, prefix) {
			out = append(out, terminal.Choice{Name: k.Skill.Name})
		}
	}
	return out
}

// completeNames returns a function that returns the commands and skills whose
// names start with a prefix.
func (t *dialog) completeNames(ctx context.Context) func(string) []terminal.Choice {
	return func(prefix string) []terminal.Choice {
		var out []terminal.Choice
		for _, k := range t.slashCommands(ctx) {
			if strings.HasPrefix(k.Name, prefix) && k.Detail == nil {
				out = append(out, terminal.Choice{Name: k.Name, Help: k.Help})
			}
		}
		return append(out, t.completeSkills(prefix)...)
	}
}
