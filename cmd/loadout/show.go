package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a skill: its fields, instructions and files",
		Example: `  loadout show pdf
  loadout show pdf@^1.2
  loadout show user.claude/pdf --json`,
		Args:              cobra.ExactArgs(1),
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
	e, err := rt.Catalog().Resolve(cmd.Context(), ref)
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
	head := a.bold(safe(s.Title()))
	if s.Version != "" {
		head += " " + safe(s.Version)
	}
	fmt.Fprintf(a.stdout, "%s\n%s\n\n", head, safe(skill.OneLine(s.Description)))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "%s %s\n", a.faint(fmt.Sprintf("%-13s", name)), safe(value))
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
	row("MCP servers", strings.Join(s.MCPServers.Names, ", "))
	if s.DisableModelInvocation {
		row("for", "people only, not offered to a model")
	}
	row("digest", m.Digest())
	row("size", fmt.Sprintf("about %d tokens of instructions, %d files of %d bytes", skill.Tokens(s.Instructions), len(m), m.Size()))
	for _, f := range m {
		if skill.IsFileName(f.Path) {
			continue
		}
		kind := ""
		if f.Script {
			kind = "  script"
		}
		fmt.Fprintf(a.stdout, "  %s %s\n", safe(f.Path), a.faint(fmt.Sprintf("%d bytes%s", f.Size, kind)))
	}
	fmt.Fprintf(a.stdout, "\n%s\n", safe(strings.Trim(s.Instructions, "\n")))
}

// completeSkill completes names of skills in the shell.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.quiet = true
	rt, err := a.open(cmd.Context())
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer rt.Close()
	var names []string
	for _, e := range rt.Catalog().Snapshot().Skills() {
		names = append(names, e.Name+"\t"+clip(e.Description, 60))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
