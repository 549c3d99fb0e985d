package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a skill with its fields, instructions and files",
		Long: `Show the fields, files and instructions of a skill. NAME can be a name,
name@constraint, origin/name, or the digest of the skill's files.`,
		Example: `  loadout show pdf
  loadout show pdf@^1.2
  loadout show user.claude/pdf --json`,
		Args:              argCount(1, 1, "the NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := a.OpenRuntime(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			return a.showSkill(cmd, rt, args[0])
		},
	}
	a.profileFlag(cmd.Flags())
	return cmd
}

// shownSkill is the JSON output of the show command.
type shownSkill struct {
	Name                   string            `json:"name"`
	DisplayName            string            `json:"displayName"`
	Description            string            `json:"description"`
	Version                string            `json:"version"`
	License                string            `json:"license,omitempty"`
	Compatibility          string            `json:"compatibility,omitempty"`
	Author                 string            `json:"author,omitempty"`
	Category               string            `json:"category,omitempty"`
	Metadata               map[string]string `json:"metadata,omitempty"`
	AllowedTools           []string          `json:"allowedTools,omitempty"`
	Tags                   []string          `json:"tags,omitempty"`
	BindShells             []string          `json:"bindShells,omitempty"`
	Dependencies           []string          `json:"dependencies,omitempty"`
	Model                  string            `json:"model,omitempty"`
	ArgumentHint           string            `json:"argumentHint,omitempty"`
	Preload                bool              `json:"preload,omitempty"`
	Requirements           []string          `json:"requirements,omitempty"`
	Examples               []string          `json:"examples,omitempty"`
	DisableModelInvocation bool              `json:"disableModelInvocation"`
	UserInvocable          bool              `json:"userInvocable"`
	Tools                  []skill.Tool      `json:"tools,omitempty"`
	Provider               *skill.Provider   `json:"provider,omitempty"`
	MCPServers             any               `json:"mcpServers,omitempty"`
	Config                 json.RawMessage   `json:"config,omitempty"`
	Origin                 string            `json:"origin"`
	Scope                  catalog.Scope     `json:"scope"`
	Path                   string            `json:"path"`
	Digest                 string            `json:"digest"`
	State                  skillstate.State  `json:"state,omitempty"` // absent for an archive
	Tokens                 int               `json:"tokens"`
	Instructions           string            `json:"instructions"`
	Files                  []skill.File      `json:"files"`
}

func (a *app) showSkill(cmd *cobra.Command, rt *loadout.Runtime, ref string) error {
	e, err := a.resolveSkill(cmd.Context(), rt, ref)
	if err != nil {
		return err
	}
	s, _, err := rt.Catalog().Read(cmd.Context(), e)
	if err != nil {
		return err
	}
	m, err := rt.Catalog().Manifest(cmd.Context(), e)
	if err != nil {
		return err
	}
	state, err := a.SkillState(cmd.Context(), rt, e, m)
	if err != nil {
		return err
	}
	if e.Server != "" { // the name in its frontmatter is that of other skills, too
		full := *s
		full.Name, full.DisplayName = e.Name, ""
		s = &full
	}
	if a.JSON {
		shown := newShownSkill(e, s, m)
		shown.State = state
		return a.PrintJSON(shown)
	}
	a.printSkill(e, s, m, state)
	return nil
}

func newShownSkill(e *catalog.Entry, s *skill.Skill, m skill.Manifest) shownSkill {
	out := shownSkill{
		Name: s.Name, DisplayName: s.DisplayName, Description: s.Description, Version: s.Version, License: s.License,
		Compatibility: s.Compatibility, Author: s.Author, Category: s.Category, Metadata: s.Metadata, AllowedTools: s.AllowedTools,
		Tags: s.Tags, BindShells: s.BindShells, Dependencies: s.Dependencies, Model: s.Model, ArgumentHint: s.ArgumentHint,
		Preload: s.Preload, Requirements: s.Requirements, Examples: s.Examples, DisableModelInvocation: s.DisableModelInvocation, UserInvocable: s.UserInvocable, Tools: s.Tools,
		Provider: s.Provider, Config: s.Config, Origin: e.Origin, Scope: e.Scope, Path: e.Path, Digest: m.Digest(),
		Tokens: tokencount.Estimate(s.Instructions), Instructions: s.Instructions, Files: append([]skill.File{}, m...),
	}
	switch {
	case s.MCPServers.Configs != nil:
		out.MCPServers = s.MCPServers.Configs
	case s.MCPServers.Names != nil:
		out.MCPServers = s.MCPServers.Names
	}
	return out
}

func (a *app) printSkill(e *catalog.Entry, s *skill.Skill, m skill.Manifest, state skillstate.State) {
	var b strings.Builder
	b.WriteString(a.Bold(plain(cmp.Or(s.DisplayName, s.Name))))
	if s.Version != "" {
		b.WriteString(" " + plain(s.Version))
	}
	b.WriteString("\n")
	a.WriteWrapped(&b, "", describe(s.Description), console.NoStyle)
	b.WriteString("\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", a.Faint(fmt.Sprintf("%-13s", name)), plain(value))
		}
	}
	row("name", s.Name)
	row("from", fmt.Sprintf("%s (%s): %s", e.Origin, e.Scope, e.Path))
	row("license", s.License)
	row("compatibility", s.Compatibility)
	row("author", s.Author)
	row("tags", strings.Join(s.Tags, ", "))
	row("tools", strings.Join(s.AllowedTools, " "))
	row("needs", strings.Join(s.Dependencies, ", "))
	row("packages", strings.Join(s.Requirements, ", "))
	row("examples", strings.Join(s.Examples, "; "))
	row("only for", strings.Join(s.BindShells, ", "))
	row("MCP servers", strings.Join(s.MCPServers.Names, ", "))
	if s.DisableModelInvocation {
		row("for", "users only, not offered to models")
	}
	row("digest", m.Digest())
	approve := "its code is awaiting approval; to approve it: loadout approve " + console.ShellQuote(e.Key()) + a.SkillFlags()
	row("state", map[skillstate.State]string{skillstate.Pending: "pending: " + approve, skillstate.Superseded: "superseded by a newer version: " + approve}[state])
	row("size", fmt.Sprintf("about %s of instructions; %s, %s", console.Pluralize(tokencount.Estimate(s.Instructions), "token"), console.Pluralize(len(m), "file"), console.FormatSize(m.Size())))
	a.writeFileList(&b, m, 24)
	fmt.Fprintf(&b, "\n%s\n", safe(untrusted.New(strings.Trim(s.Instructions, "\n")).Visible()))
	fmt.Fprint(a.Stdout, b.String())
}

// writeFileList lists a skill's files except SKILL.md. On a terminal it lists
// at most limit files.
func (a *app) writeFileList(b *strings.Builder, m skill.Manifest, limit int) {
	longest, others := 0, skill.Manifest{}
	for _, f := range m {
		if !skillpath.IsSkillFile(f.Path) {
			others = append(others, f)
			longest = max(longest, min(terminal.Width(plain(f.Path)), 48))
		}
	}
	for i, f := range others {
		if i == limit && a.TerminalWidth() > 0 && len(others) > limit+1 {
			fmt.Fprintf(b, "  … and %d more; --json lists them\n", len(others)-limit)
			return
		}
		kind := ""
		if f.Script {
			kind = "  script"
		}
		name := plain(f.Path)
		fmt.Fprintf(b, "  %s%s  %s\n", name, strings.Repeat(" ", max(longest-terminal.Width(name), 0)), a.Faint(console.FormatSize(f.Size)+kind))
	}
}

// resolveSkill finds a skill. If the skill exists but cannot be loaded, the
// error says why.
func (a *app) resolveSkill(ctx context.Context, rt *loadout.Runtime, ref string) (*catalog.Entry, error) {
	e, err := rt.Catalog().Resolve(ctx, ref)
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok && missing.Reason == "" {
		for _, p := range rt.Catalog().Snapshot().Problems() {
			if p.Severity == skill.Error && skillpath.IsSkillFile(filepath.Base(p.Path)) && filepath.Base(filepath.Dir(p.Path)) == ref {
				return nil, exit.Errorf(exit.Failure, "list all problems: loadout validate "+console.ShellQuote(filepath.Dir(p.Path)), "skill %s does not load: %s: %s", ref, formatPosition(p), p.Message)
			}
		}
	}
	return e, err
}

// completeSkill completes skill names in the shell.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.Quiet = true
	rt, err := a.OpenRuntime(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer rt.Close()
	var names []string
	for _, e := range rt.Catalog().Snapshot().Skills() {
		// Names that need quoting are not completed.
		if !strings.ContainsFunc(e.Name, console.NeedsQuoting) {
			names = append(names, e.Name+"\t"+terminal.Clip(plain(e.Description), 60))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
