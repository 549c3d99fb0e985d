package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a skill: its fields, instructions and files",
		Long: `Show a skill: its fields, files and instructions. It is named by NAME,
NAME@CONSTRAINT, ORIGIN/NAME, or the digest of its files.`,
		Example: `  loadout show pdf
  loadout show pdf@^1.2
  loadout show user.claude/pdf --json`,
		Args:              want(1, 1, "the NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			return a.show(cmd, rt, args[0])
		},
	}
	a.profileFlag(cmd.Flags())
	return cmd
}

// shownSkill is show --json.
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
	Tokens                 int               `json:"tokens"`
	Instructions           string            `json:"instructions"`
	Files                  []skill.File      `json:"files"`
}

func (a *app) show(cmd *cobra.Command, rt *loadout.Runtime, ref string) error {
	e, err := a.resolve(cmd.Context(), rt, ref)
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
	if a.json {
		return a.printJSON(shown(e, s, m))
	}
	a.showText(e, s, m)
	return nil
}

func shown(e *catalog.Entry, s *skill.Skill, m skill.Manifest) shownSkill {
	out := shownSkill{
		Name: s.Name, DisplayName: s.DisplayName, Description: s.Description, Version: s.Version, License: s.License,
		Compatibility: s.Compatibility, Author: s.Author, Category: s.Category, Metadata: s.Metadata, AllowedTools: s.AllowedTools,
		Tags: s.Tags, BindShells: s.BindShells, Dependencies: s.Dependencies, Model: s.Model, ArgumentHint: s.ArgumentHint,
		Preload: s.Preload, DisableModelInvocation: s.DisableModelInvocation, UserInvocable: s.UserInvocable, Tools: s.Tools,
		Provider: s.Provider, Config: s.Config, Origin: e.Origin, Scope: e.Scope, Path: e.Path, Digest: m.Digest(),
		Tokens: skill.Tokens(s.Instructions), Instructions: s.Instructions, Files: append([]skill.File{}, m...),
	}
	switch {
	case s.MCPServers.Configs != nil:
		out.MCPServers = s.MCPServers.Configs
	case s.MCPServers.Names != nil:
		out.MCPServers = s.MCPServers.Names
	}
	return out
}

func (a *app) showText(e *catalog.Entry, s *skill.Skill, m skill.Manifest) {
	var b strings.Builder
	b.WriteString(a.bold(plain(s.Title())))
	if s.Version != "" {
		b.WriteString(" " + plain(s.Version))
	}
	b.WriteString("\n")
	a.wrap(&b, "", s.Description, same)
	b.WriteString("\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", a.faint(fmt.Sprintf("%-13s", name)), plain(value))
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
	row("only for", strings.Join(s.BindShells, ", "))
	row("MCP servers", strings.Join(s.MCPServers.Names, ", "))
	if s.DisableModelInvocation {
		row("for", "people only, not offered to a model")
	}
	row("digest", m.Digest())
	row("size", fmt.Sprintf("about %s of instructions; %s, %s", counted(skill.Tokens(s.Instructions), "token"), counted(len(m), "file"), sized(m.Size())))
	a.files(&b, m, 24)
	fmt.Fprintf(&b, "\n%s\n", safe(strings.Trim(s.Instructions, "\n")))
	fmt.Fprint(a.stdout, b.String())
}

// files lists the files of a skill besides its SKILL.md, on a terminal at most
// that many.
func (a *app) files(b *strings.Builder, m skill.Manifest, most int) {
	longest, others := 0, skill.Manifest{}
	for _, f := range m {
		if !skill.IsFileName(f.Path) {
			others = append(others, f)
			longest = max(longest, min(columns(plain(f.Path)), 48))
		}
	}
	for i, f := range others {
		if i == most && a.width() > 0 && len(others) > most+1 {
			fmt.Fprintf(b, "  … and %d more; --json lists them\n", len(others)-most)
			return
		}
		kind := ""
		if f.Script {
			kind = "  script"
		}
		name := plain(f.Path)
		fmt.Fprintf(b, "  %s%s  %s\n", name, strings.Repeat(" ", max(longest-columns(name), 0)), a.faint(sized(f.Size)+kind))
	}
}

// resolve finds a skill. One that is there and does not load is told from one
// that is not there.
func (a *app) resolve(ctx context.Context, rt *loadout.Runtime, ref string) (*catalog.Entry, error) {
	e, err := rt.Catalog().Resolve(ctx, ref)
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok && missing.Reason == "" {
		for _, p := range rt.Catalog().Snapshot().Problems() {
			if p.Severity == skill.Error && skill.IsFileName(filepath.Base(p.Path)) && filepath.Base(filepath.Dir(p.Path)) == ref {
				return nil, fail(exitFound, "see all that is wrong with it: loadout validate "+quoted(filepath.Dir(p.Path)), "skill %s does not load: %s: %s", ref, where(p), p.Message)
			}
		}
	}
	return e, err
}

// completeSkill completes names of skills in the shell.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.quiet = true
	rt, err := a.open(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer rt.Close()
	var names []string
	for _, e := range rt.Catalog().Snapshot().Skills() {
		// A name that a shell would act on is not put into a command line.
		if !strings.ContainsFunc(e.Name, unquotable) {
			names = append(names, e.Name+"\t"+clip(e.Description, 60))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
