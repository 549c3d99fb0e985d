package skill_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/skill"
)

func parse(t *testing.T, frontmatter, folder string) (*skill.Skill, skill.Diagnostics) {
	t.Helper()
	s, ds := skill.ParseBytes([]byte("---\n"+frontmatter+"---\n# Do it\n"), skill.FileName, folder)
	if s == nil || !ds.Loads() {
		t.Fatalf("does not load: %v", ds)
	}
	return s, ds
}

func codes(ds skill.Diagnostics) []string {
	var out []string
	for _, d := range ds.Problems() {
		out = append(out, d.Code)
	}
	return out
}

// W1: Wegent's field names; numeric versions become text, the body is the prompt, and
// the name may come from the directory.
func TestW1WegentFieldsAreRead(t *testing.T) {
	const fields = `description: Draws diagrams.
displayName: 图表
version: 1.10
author: Team
tags: ["diagram", "svg"]
bindShells:
  - Chat
config:
  timeout: 30
  nested: {deep: [1, 2]}
tools:
  - name: render
    provider: mermaid
    config: {theme: dark}
  - name: read
provider:
  class: MermaidProvider
mcpServers:
  docs:
    type: streamable-http
    url: https://docs.example
dependencies:
  - base
preload: true
`
	want := &skill.Skill{
		Name: "mermaid", Description: "Draws diagrams.", DisplayName: "图表", Version: "1.10", Author: "Team",
		Tags: []string{"diagram", "svg"}, BindShells: []string{"Chat"}, Config: []byte(`{"timeout":30,"nested":{"deep":[1,2]}}`),
		Tools:    []skill.Tool{{Name: "render", Provider: "mermaid", Config: []byte(`{"theme":"dark"}`)}, {Name: "read"}},
		Provider: &skill.Provider{Module: "provider", Class: "MermaidProvider"},
		MCPServers: skill.Servers{Names: []string{"docs"},
			Configs: []byte(`{"docs":{"type":"streamable-http","url":"https://docs.example"}}`)},
		Dependencies: []string{"base"}, Preload: true, UserInvocable: true,
		Frontmatter: []byte(fields), Instructions: "# Do it\n", Unnamed: true,
	}
	got, ds := parse(t, fields, "mermaid")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(skill.Skill{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"name-missing"}, codes(ds)); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsKeepTheirText(t *testing.T) {
	for written, want := range map[string]string{"1.10": "1.10", "1": "1", "'2.0.0'": "2.0.0", "1.0e1": "1.0e1", "2024-01-31": "2024-01-31", "": "", "~": ""} {
		if s, _ := parse(t, ok+"version: "+written+"\n", "pdf"); s.Version != want {
			t.Errorf("version: %s is %q, want %q", written, s.Version, want)
		}
	}
}

func TestMetadataFieldsAreTheFallback(t *testing.T) {
	s, _ := parse(t, ok+`metadata:
  version: 2
  author: nobody
  display-name: PDF tools
  category: files
  keywords: pdf, text
  user-invocable: false
  disable-model-invocation: "yes"
  argument-hint: "[file]"
  model: small
author: me
`, "pdf")
	if s.Version != "2" || s.Author != "me" || s.DisplayName != "PDF tools" || s.Category != "files" ||
		s.UserInvocable || !s.DisableModelInvocation || s.ArgumentHint != "[file]" || s.Model != "small" {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff([]string{"pdf", "text"}, s.Tags); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"version": "2", "author": "nobody", "display-name": "PDF tools", "category": "files", "keywords": "pdf, text",
		"user-invocable": "false", "disable-model-invocation": "yes", "argument-hint": "[file]", "model": "small"}
	if diff := cmp.Diff(want, s.Metadata); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataValuesAreKeptAsText(t *testing.T) {
	s, _ := parse(t, ok+"metadata:\n  a: 1\n  b: [x, 2]\n  c: {d: true}\n  e:\n  f: 2024-01-31\n  g: &g text\n  h: *g\n", "pdf")
	want := map[string]string{"a": "1", "b": "x, 2", "c": `{"d":true}`, "e": "", "f": "2024-01-31", "g": "text", "h": "text"}
	if diff := cmp.Diff(want, s.Metadata); diff != "" {
		t.Error(diff)
	}
}

func TestMCPServersAreMapOrNames(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want skill.Servers
		code []string
	}{
		{"mcpServers: [weibo, docs]\n", skill.Servers{Names: []string{"weibo", "docs"}}, nil},
		{"mcpServers: weibo, docs\n", skill.Servers{Names: []string{"weibo", "docs"}}, nil},
		{"mcp_servers:\n  a: {command: x}\n", skill.Servers{Names: []string{"a"}, Configs: []byte(`{"a":{"command":"x"}}`)}, nil},
		{"metadata:\n  mcp-servers: [a]\n", skill.Servers{Names: []string{"a"}}, nil},
		{"mcpServers:\n", skill.Servers{}, nil},
		{"mcpServers:\n  - name: a\n    url: b\n  - c\n", skill.Servers{Names: []string{"c"}}, []string{"mcp-servers"}},
		{"mcpServers:\n  ? [a]\n  : b\n", skill.Servers{}, []string{"mcp-servers"}},
		{"mcpServers: {a: {x: 1}, b: {}, a: {x: 2}}\n",
			skill.Servers{Names: []string{"a", "b"}, Configs: []byte(`{"b":{},"a":{"x":2}}`)}, []string{"duplicate-key"}},
	} {
		s, ds := parse(t, ok+tt.yaml, "pdf")
		if diff := cmp.Diff(tt.want, s.MCPServers); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
		if diff := cmp.Diff(tt.code, codes(ds)); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
	}
}

func TestAProviderIsExactlyOneOfThree(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want *skill.Provider
		code []string
	}{
		{"{class: P}", &skill.Provider{Module: "provider", Class: "P"}, nil},
		{"{module: tools, class: P}", &skill.Provider{Module: "tools", Class: "P"}, nil},
		{"{command: [bin/serve, --fast]}", &skill.Provider{Command: []string{"bin/serve", "--fast"}}, nil},
		{"{command: bin/serve}", &skill.Provider{Command: []string{"bin/serve"}}, nil},
		{"{wasm: tools.wasm}", &skill.Provider{WASM: "tools.wasm"}, nil},
		{"{wasm: a.wasm, command: b}", nil, []string{"provider-incomplete"}},
		{"{module: tools}", nil, []string{"provider-incomplete"}},
		{"{}", nil, []string{"provider-incomplete"}},
		{"mermaid", nil, []string{"provider-not-a-map"}},
		{"", nil, nil},
	} {
		s, ds := parse(t, ok+"provider: "+tt.yaml+"\n", "pdf")
		if diff := cmp.Diff(tt.want, s.Provider); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
		if diff := cmp.Diff(tt.code, codes(ds)); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
	}
}

func TestFieldsOfWrongTypeAreReportedAndOmitted(t *testing.T) {
	s, ds := parse(t, ok+"config: [a]\npreload: perhaps\ntools:\n  - provider: x\n  - name: y\n    config: z\n", "pdf")
	if s.Config != nil || s.Preload || len(s.Tools) != 1 || s.Tools[0].Config != nil {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff([]string{"not-a-boolean", "not-a-map", "tool-without-name", "not-a-map"}, codes(ds)); diff != "" {
		t.Error(diff)
	}
}

// B9: both spellings of allowed tools, text or list; and the keys of ba-agent.
func TestB9AllowedToolsSpellings(t *testing.T) {
	want := []string{"Read", "Bash(python:a,b)", "mcp__docs__search"}
	for _, yaml := range []string{
		"allowed-tools: Read Bash(python:a,b) mcp__docs__search\n",
		"allowed_tools: Read, Bash(python:a,b), mcp__docs__search\n",
		"allowedTools: Read,Bash(python:a,b) mcp__docs__search\n",
		"allowed-tools:\n  - Read\n  - Bash(python:a,b)\n  - mcp__docs__search\n",
		"allowed_tools: [Read, \"Bash(python:a,b)\", mcp__docs__search]\n",
		"tools: Read, Bash(python:a,b), mcp__docs__search\n",
		"tools: [Read, \"Bash(python:a,b)\", mcp__docs__search]\n",
		"metadata:\n  allowed-tools: Read Bash(python:a,b) mcp__docs__search\n",
	} {
		s, ds := parse(t, ok+yaml, "pdf")
		if diff := cmp.Diff(want, s.AllowedTools); diff != "" || len(s.Tools) > 0 {
			t.Errorf("%s: %s %v", yaml, diff, s.Tools)
		}
		if len(ds.Problems()) > 0 {
			t.Errorf("%s: %v", yaml, ds)
		}
	}
	s, _ := parse(t, "name: report\ndisplay_name: Report\ndescription: d\nversion: \"1.0.0\"\ncategory: Analysis\nauthor: A\nlicense: MIT\n"+
		"model: big\ndisable_model_invocation: true\ntags: [a]\n", "report")
	if s.DisplayName != "Report" || s.Version != "1.0.0" || s.Category != "Analysis" || s.Author != "A" || s.License != "MIT" ||
		s.Model != "big" || !s.DisableModelInvocation || len(s.Tags) != 1 {
		t.Errorf("%+v", s)
	}
}

// L15: a manifest with category and tools with parameters.
func TestL15ManifestWithTools(t *testing.T) {
	s, ds := parse(t, `name: search
description: Searches.
version: 1
category: web
tools:
  - name: find
    description: Finds pages.
    parameters:
      type: object
      properties: {query: {type: string}}
    category: web
    read_only: true
`, "search")
	want := []skill.Tool{{Name: "find", Description: "Finds pages.", Category: "web", ReadOnly: true,
		Parameters: []byte(`{"type":"object","properties":{"query":{"type":"string"}}}`)}}
	if diff := cmp.Diff(want, s.Tools); diff != "" || s.Category != "web" || s.Version != "1" || s.AllowedTools != nil {
		t.Errorf("%s %+v %v", diff, s, ds)
	}
}

// K4: Unicode names, 64 characters, reserved words noted, 1024 characters of
// description by code points; what their loader refuses loads with a note.
func TestK4NamesAreReadLenientlyAndJudgedStrictly(t *testing.T) {
	for _, tt := range []struct {
		name         string
		valid, noted bool
	}{
		{"文档分析器", true, true}, {"Pdf-Tools", false, true}, {"a_b", false, true}, {"claude-api", true, true},
		{"CLAUDE-x", false, true}, {long(64), true, false}, {long(65), false, true}, {"pdf", true, false},
	} {
		s, ds := parse(t, "name: "+tt.name+"\ndescription: d\n", tt.name)
		if s.Name != tt.name || ds.Valid() != tt.valid || len(ds) > 0 != tt.noted {
			t.Errorf("%s: name %q, valid %v, %v", tt.name, s.Name, ds.Valid(), ds)
		}
	}
}

// K5: the frontmatter's name is used even if the directory has another name.
func TestK5NameComesFromFrontmatter(t *testing.T) {
	s, ds := parse(t, "name: 文档\ndescription: d\n", "document-analyzer")
	if s.Name != "文档" {
		t.Errorf("name %q", s.Name)
	}
	if diff := cmp.Diff([]string{"name-folder"}, codes(ds)); diff != "" {
		t.Error(diff)
	}
}

func TestMissingNameUsesDirectoryName(t *testing.T) {
	for _, yaml := range []string{"", "name:\n", "name: ~\n", "name: ''\n", "name: [a]\n", "name: a/b\n", "name: ..\n", "name: \"a\\nb\"\n"} {
		s, ds := skill.ParseBytes([]byte(doc(yaml+"description: d\n")), skill.FileName, "Folder Name")
		if s == nil || s.Name != "Folder Name" || !ds.Loads() {
			t.Errorf("%q: %+v %v", yaml, s, ds)
		}
		_, ds = skill.ParseBytes([]byte(doc(yaml+"description: d\n")), skill.FileName, "")
		if ds.Loads() {
			t.Errorf("%q without a folder: %v", yaml, ds)
		}
	}
}
