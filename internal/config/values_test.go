package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/config"
)

// Each value is either valid, or the only fault names the setting and the reason.
func TestValuesOfSettings(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	var many []string
	for i := range 257 {
		many = append(many, fmt.Sprintf("n%d: openai:x", i))
	}
	for _, tt := range []struct{ setting, value, fault string }{
		{"policy.approved", "[pdf=sha256:" + digest + "]", ""},
		{"policy.approved", "[pdf]", "expected SKILL=sha256:DIGEST"},
		{"policy.approved", "[pdf=" + digest + "]", "expected SKILL=sha256:DIGEST"},
		{"policy.approved", "['=sha256:" + digest + "']", "expected SKILL=sha256:DIGEST"},
		{"policy.approved", "[pdf=sha256:" + digest[1:] + "]", "expected SKILL=sha256:DIGEST"},
		{"policy.approved", "[pdf=sha256:" + strings.ToUpper(digest) + "]", "expected SKILL=sha256:DIGEST"},
		{"sources.tokens", "[git.example.com=GIT_token1]", ""},
		{"sources.tokens", "[git.example.com]", "expected HOST=SECRET"},
		{"sources.tokens", "[=X]", "expected HOST=SECRET"},
		{"sources.tokens", "[git.example.com=]", "expected HOST=SECRET"},
		{"sources.tokens", "[git.example.com/x=X]", "expected HOST=SECRET"},
		{"sources.tokens", "[git.example.com=A-B]", "expected HOST=SECRET"},
		{"hub.import_from", "[/srv/skills, 'ssh://git.example.com']", ""},
		{"hub.import_from", "[skills]", "expected an absolute path"},
		{"hub.import_from", "['ssh://']", "expected an absolute path"},
		{"hub.import_from", "['ssh://Git.example.com']", "expected an absolute path"},
		{"hub.import_from", "['ssh://git.example.com/x']", "expected an absolute path"},
		{"models.names", "", ""},
		{"models.names", "{small: openai:x, big: {model: anthropic:y, base_url: 'https://a.example.com', key: K}}", ""},
		{"models.names", "[small]", "expected a map of names to models"},
		{"models.names", "{" + strings.Join(many[:256], ", ") + "}", ""},
		{"models.names", "{" + strings.Join(many, ", ") + "}", "too many names (limit 256)"},
		{"models.names", "{'': openai:x}", "invalid short name"},
		{"models.names", "{'a b': openai:x}", "invalid short name"},
		{"models.names", "{[a]: openai:x}", "invalid short name"},
		{"models.names", "{a: openai:x, a: openai:y}", "duplicate name"},
		{"models.names", "{a: x}", "invalid model"},
		{"models.names", "{a: 'openai:'}", "invalid model"},
		{"models.names", "{a: ':x'}", "invalid model"},
		{"models.names", "{a: [x]}", "expected a model such as"},
		{"models.names", "{a: {model: openai:x, other: y}}", "unknown key"},
		{"models.names", "{a: {model: openai:x, model: openai:y}}", "duplicate key model"},
		{"models.names", "{a: {model: [openai:x]}}", "model: expected a string"},
		{"models.names", "{a: {model: openai:x, base_url: 'ftp://a'}}", "base_url: "},
		{"models.prices", "", ""},
		{"models.prices", "{'openai:*': {input: 1, output: 2, cache_read: 0, cache_write: 3}, '*': {input: 1, output: 2}}", ""},
		{"models.prices", "[x]", "expected a map of model names to prices"},
		{"models.prices", "{x: {input: 1, output: 2}}", "has no vendor"},
		{"models.prices", "{'openai:*x': {input: 1, output: 2}}", "invalid model name"},
		{"models.prices", "{'': {input: 1, output: 2}}", "invalid model name"},
		{"models.prices", "{openai:x: {input: 1, output: 2}, openai:x: {input: 1, output: 2}}", "duplicate model"},
		{"models.prices", "{openai:x: 1}", "expected input, output"},
		{"models.prices", "{openai:x: {input: 1}}", "missing input or output"},
		{"models.prices", "{openai:x: {output: 1}}", "missing input or output"},
		{"models.prices", "{openai:x: {input: 1, output: 2, other: 3}}", "unknown price"},
		{"models.prices", "{openai:x: {input: 1, input: 2, output: 2}}", "duplicate price input"},
		{"models.prices", "{openai:x: {input: -1, output: 2}}", "invalid price"},
		{"models.prices", "{openai:x: {input: .nan, output: 2}}", "invalid price"},
		{"models.prices", "{openai:x: {input: [1], output: 2}}", "invalid price"},
		{"user", "", ""},
		{"user", "[x]", "user: expected a map of names to values"},
		{"user", "{x: [y]}", "user.x: expected a string"},
		{"user", "{[x]: y}", "expected a string"},
	} {
		m := newMachine(t)
		text := tt.setting + ": " + tt.value + "\n"
		if section, key, ok := strings.Cut(tt.setting, "."); ok {
			text = section + ":\n  " + key + ": " + tt.value + "\n"
		}
		m.write(userFile, text)
		got := m.faults()
		if tt.fault == "" && len(got) > 0 || tt.fault != "" && (len(got) != 1 || !strings.Contains(got[0], tt.fault) || !strings.Contains(got[0], tt.setting)) {
			t.Errorf("%s: %s: %q, want %q", tt.setting, tt.value, got, tt.fault)
		}
	}
}

// A missing price of a cache is that of the input.
func TestPrices(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "models:\n  prices:\n    openai:a: {input: 1, output: 2}\n    openai:b: {input: 1, output: 2, cache_read: 3, cache_write: 4}\n")
	want := map[string]config.Price{"openai:a": {Input: 1, Output: 2, CacheRead: 1, CacheWrite: 1}, "openai:b": {Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}}
	if diff := cmp.Diff(want, m.load().Models.Prices); diff != "" {
		t.Error(diff)
	}
	for text, ok := range map[string]bool{`{"openai:a": {"input": 1, "output": 2}}`: true, "": true, "[": false, "x": false} {
		m.env["LOADOUT_MODELS_PRICES"] = text
		if got := m.faults(); (len(got) == 0) != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// What disabled commands is named with its place.
func TestCommandsDisabledBy(t *testing.T) {
	m := newMachine(t)
	if got := m.load().CommandsDisabledBy(); got != "" {
		t.Errorf("enabled: %q", got)
	}
	m.env["LOADOUT_SANDBOX_ENABLED"] = "false"
	if got := m.load().CommandsDisabledBy(); got != "sandbox.enabled is false, set by LOADOUT_SANDBOX_ENABLED" {
		t.Errorf("disabled: %q", got)
	}
}

// An agent cannot approve skills in a file that it names, and the user can.
func TestApprovedInNamedFile(t *testing.T) {
	approved := "pdf=sha256:" + strings.Repeat("0a", 32)
	for agent, want := range map[string]int{"": 1, "an agent": 0} {
		m := newMachine(t)
		m.in.File = m.write("named.yaml", "policy:\n  approved: ["+approved+"]\n")
		m.in.Agent = func() string { return agent }
		c := m.load()
		if len(c.Policy.Approved) != want || len(m.notes(c)) != 1-want {
			t.Errorf("agent %q: approved %v, notes %v", agent, c.Policy.Approved, m.notes(c))
		}
	}
}
