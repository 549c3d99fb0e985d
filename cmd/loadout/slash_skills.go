package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// skillCommands are the skills that a person may call by name, but those that go by the
// name of a command.
func (t *talk) skillCommands(ctx context.Context, own []terminal.Command) []terminal.Command {
	var out []terminal.Command
	for _, e := range t.runtime.Catalog().Snapshot().Skills() {
		taken := slices.ContainsFunc(own, func(k terminal.Command) bool { return k.Name == e.Name })
		if !e.UserInvocable || taken || strings.ContainsFunc(e.Name, func(r rune) bool { return unicode.IsSpace(r) || r == '/' }) {
			continue
		}
		out = append(out, terminal.Command{
			Name: e.Name, Args: plain(e.ArgumentHint), Help: clip(e.Description, 200),
			Detail: func() string { return t.detail(ctx, e) },
			Run: func(ctx context.Context, args string, tell func(agent.Event)) (string, error) {
				return "", t.Invoke(ctx, e.Key(), args, tell)
			},
		})
	}
	return out
}

// detail is one line about a skill: its tools, and how it is called.
func (t *talk) detail(ctx context.Context, e *catalog.Entry) string {
	var out []string
	if hint := plain(e.ArgumentHint); hint != "" {
		out = append(out, "as /"+e.Name+" "+hint)
	}
	if tools := t.toolsOf(ctx, e); len(tools) > 0 {
		out = append(out, "tools: "+strings.Join(tools, ", "))
	}
	return strings.Join(out, "; ")
}

// toolsOf are the tools that a skill wants or brings.
func (t *talk) toolsOf(ctx context.Context, e *catalog.Entry) []string {
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

// scriptsOf are the scripts of a skill.
func (t *talk) scriptsOf(ctx context.Context, e *catalog.Entry) []string {
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

// helpOfSkill is what there is to know of a skill before it is used.
func (t *talk) helpOfSkill(ctx context.Context, name string) (string, error) {
	e, err := t.runtime.Catalog().Snapshot().Get(name)
	if err != nil {
		return "", t.unknownSkill(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n%s\n\n", literal(e.Title()), literal(e.Description))
	if hint := plain(e.ArgumentHint); hint != "" && e.UserInvocable {
		fmt.Fprintf(&b, "- as: `%s`\n", strings.ReplaceAll("/"+e.Name+" "+hint, "`", "'"))
	}
	if tools := t.toolsOf(ctx, e); len(tools) > 0 {
		fmt.Fprintf(&b, "- tools: %s\n", literal(strings.Join(tools, ", ")))
	}
	if scripts := t.scriptsOf(ctx, e); len(scripts) > 0 {
		fmt.Fprintf(&b, "- scripts: %s\n", literal(clip(strings.Join(scripts, ", "), 500)))
	}
	if !e.UserInvocable {
		b.WriteString("- only the agent calls it; `/load` loads it\n")
	}
	if e.DisableModelInvocation {
		b.WriteString("- only you call it, not the agent\n")
	}
	from := e.Path
	if !strings.HasPrefix(from, e.Origin) {
		from = e.Origin + ": " + t.app.shortPath(from)
	}
	fmt.Fprintf(&b, "- from %s\n", literal(from))
	return b.String(), nil
}

// unknownSkill is the error of a name that no skill has.
func (t *talk) unknownSkill(err error) error {
	hint := "/skills names those that there are"
	if e, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		if h := t.app.notFoundHint(e); strings.Contains(h, "did you mean") {
			hint = h
		}
	}
	return fail(exitNotFound, hint, "%w", err)
}

// skills names the skills, those that are loaded first.
func (t *talk) skills(context.Context, string) (string, error) {
	var b strings.Builder
	active := t.session.Active()
	if len(active) > 0 {
		b.WriteString("**Loaded**\n\n")
	}
	for _, k := range active {
		left, bounded := t.session.Left(k.Skill)
		until := "until /unload"
		switch {
		case bounded && left == 0:
			until = "for this turn"
		case bounded:
			until = fmt.Sprintf("for %d more turns without use", left)
		}
		fmt.Fprintf(&b, "- %s, %s tokens, %s\n", literal(k.Skill.Name), terminal.Tokens(k.Tokens), until)
	}
	all := t.runtime.Catalog().Snapshot().Skills()
	if len(all) == 0 {
		return b.String() + "There are no skills. `loadout new NAME` makes one.\n", nil
	}
	fmt.Fprintf(&b, "\n**Skills** (%d)\n\n", len(all))
	const most = 60
	for i, e := range all {
		if i == most {
			fmt.Fprintf(&b, "\nand %d more: type / and the beginning of a name\n", len(all)-most)
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", literal(e.Name), literal(clip(e.Description, 100)))
	}
	return b.String(), nil
}

// load loads a skill until it is unloaded.
func (t *talk) load(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", fail(exitUsage, "as: /load NAME; /skills names them", "/load needs the name of a skill")
	}
	r, err := t.Load(ctx, name, session.KeepPinned)
	if err != nil {
		return "", err
	}
	if r.State == session.StateFailed {
		if _, err := t.runtime.Catalog().Snapshot().Get(name); errors.Is(err, fs.ErrNotExist) || err != nil {
			return "", t.unknownSkill(err)
		}
		return "", fail(exitFound, "see: loadout show "+quoted(name), "%s cannot be loaded: %s", name, strings.Join(r.Problems, "; "))
	}
	var b strings.Builder
	state := map[session.LoadState]string{session.StateAlready: "is loaded already", session.StateDegraded: "is loaded, but not all of it works"}[r.State]
	if state == "" {
		state = "is loaded"
	}
	fmt.Fprintf(&b, "%s %s, until `/unload`.\n", literal(r.Material.ID.Name), state)
	if len(r.Problems) > 0 {
		b.WriteString("\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "- %s\n", literal(p))
	}
	return b.String(), nil
}

// unload unloads a skill.
func (t *talk) unload(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", fail(exitUsage, "as: /unload NAME; /skills names those that are loaded", "/unload needs the name of a skill")
	}
	gone, err := t.session.Unload(ctx, name, "the person unloaded it", false)
	if needed := (*session.NeededError)(nil); errors.As(err, &needed) {
		return "", fail(exitFound, "unload first what needs it", "%w", err)
	}
	if errors.Is(err, session.ErrNotLoaded) {
		return "", fail(exitNotFound, "/skills names those that are loaded", "%w", err)
	}
	if err != nil {
		return "", err
	}
	return literal(strings.Join(gone, ", ")) + " is unloaded.\n", nil
}

// skillNames are the skills that begin with a text.
func (t *talk) skillNames(prefix string) []terminal.Choice {
	var out []terminal.Choice
	for _, e := range t.runtime.Catalog().Snapshot().Skills() {
		if strings.HasPrefix(e.Name, prefix) {
			out = append(out, terminal.Choice{Name: e.Name, Help: clip(e.Description, 200)})
		}
	}
	return out
}

func (t *talk) loadedNames(prefix string) []terminal.Choice {
	var out []terminal.Choice
	for _, k := range t.session.Active() {
		if strings.HasPrefix(k.Skill.Name, prefix) {
			out = append(out, terminal.Choice{Name: k.Skill.Name})
		}
	}
	return out
}

// namesOfAll are the commands and skills that begin with a text.
func (t *talk) namesOfAll(ctx context.Context) func(string) []terminal.Choice {
	return func(prefix string) []terminal.Choice {
		var out []terminal.Choice
		for _, k := range t.commands(ctx) {
			if strings.HasPrefix(k.Name, prefix) && k.Detail == nil {
				out = append(out, terminal.Choice{Name: k.Name, Help: k.Help})
			}
		}
		return append(out, t.skillNames(prefix)...)
	}
}
