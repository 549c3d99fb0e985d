package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

// runHere runs a command in this process with an empty home directory, and
// returns its output.
func runHere(t *testing.T, home string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	getenv := func(name string) string {
		switch name {
		case "HOME", "USERPROFILE":
			return home
		case "PATH":
			return os.Getenv("PATH")
		}
		return ""
	}
	run(t.Context(), args, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: getenv, caller: testCaller, operator: testOperator()})
	return out.String()
}

// writeSkill writes a skill with a text in each field and in a server, and
// returns its directory.
func writeSkill(t *testing.T, dir, name, text string) string {
	t.Helper()
	quoted := untrustedtest.YAML(text)
	server := "mcpServers: {" + quoted + ": {command: " + quoted + ", args: [" + quoted + "], env: {" + quoted + ": " + quoted + "}}}\n---\nDo"
	for file, data := range map[string]string{"SKILL.md": strings.Replace(untrustedtest.Skill(name, text), "---\nDo", server, 1), "scripts/run.sh": "exit\n"} {
		path := filepath.Join(dir, name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

// An agent may read what a command prints. Its JSON output keeps the values.
func TestHostileFieldsAreCleanedByEveryCommand(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	check := func(args ...string) {
		t.Helper()
		got := runHere(t, home, args...)
		if leak := untrusted.Inspect(got); !leak.Clean() {
			t.Errorf("%s: %s", strings.Join(args, " "), leak)
		}
		if forged := untrustedtest.Forged(got); forged != "" {
			t.Errorf("%s: forged %s", strings.Join(args, " "), forged)
		}
	}
	for i, text := range untrustedtest.Hostile() {
		name := "skill-" + strconv.Itoa(i)
		skill := writeSkill(t, dir, name, text)
		valid := strings.ToValidUTF8(text, "\ufffd") // arguments of a model are no better
		commands := [][]string{
			{"show", name}, {"explain", name}, {"approve", name}, {"run", name}, {"show", name, "--json"}, {"explain", name, "--json"},
			{"approve", name, "--dry-run"}, {"approve", name, "--dry-run", "--json"}, {"show", valid}, {"approve", valid}, {"inspect"},
		}
		for j, args := range commands {
			if untrustedtest.Selected(i, j) {
				if args[0] == "inspect" {
					args = append(args, skill)
				} else {
					args = append(args, "--skills", skill)
				}
				check(args...)
			}
		}
	}
	for _, args := range [][]string{{"list"}, {"list", "--full"}, {"list", "--json"}, {"search", "charts"}, {"search", "charts", "--json"},
		{"doctor"}, {"doctor", "--json"}, {"capabilities"}, {"capabilities", "--json"}, {"__complete", "show", ""}} {
		check(append(args, "--skills", dir)...)
	}
	for _, command := range []string{"validate", "scan"} {
		check(command, dir, "--json")
	}
	check("validate", dir)
}

func TestLegitimateDescriptionsAreUnchangedByEveryCommand(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	for i, text := range untrustedtest.Legitimate() {
		name := "skill-" + strconv.Itoa(i)
		skill := writeSkill(t, dir, name, text)
		if got := runHere(t, home, "show", name, "--skills", skill); !strings.Contains(got, "author        "+text+"\n") {
			t.Errorf("show: %+q is not in %q", text, got)
		}
	}
	list := runHere(t, home, "list", "--full", "--skills", dir)
	for _, text := range untrustedtest.Legitimate() {
		if !strings.Contains(list, " "+text+"\n") {
			t.Errorf("list: %+q is missing", text)
		}
	}
}
