package provider_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/packages"
)

const rows = `[{"date":"1","value":10},{"date":"2","value":11},{"date":"3","value":10},{"date":"4","value":10},{"date":"5","value":9},{"date":"6","value":10},{"date":"7","value":30}]`

// The schema of a function's tool comes from its signature and its docstring.
func TestFunctionIsATool(t *testing.T) {
	w := newFixture(t)
	if _, err := w.start(t, "anomaly"); err == nil {
		t.Fatal("it started before it was approved")
	}
	w.approve(t, "anomaly")
	c, _ := w.dial(t, "anomaly", nil)
	res, names := list(t, c)
	if diff := cmp.Diff([]string{"detect"}, names); diff != "" {
		t.Fatal(diff)
	}
	if want := "Finds anomalies.\n\nReturns:\n    the anomalies"; res.Tools[0].Description != want {
		t.Errorf("description %q", res.Tools[0].Description)
	}
	var want, got any
	decode(t, `{"type":"object","required":["data"],"properties":{
		"data":{"type":"array","items":{"type":"object"},"description":"rows (DataFrame, dict, list), with the columns date and value"},
		"method":{"enum":["statistical","historical"],"type":"string","default":"statistical","description":"how they are found"},
		"threshold":{"type":"number","default":2,"description":"standard deviations"},
		"labels":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"default":null},
		"config":{"anyOf":[{"type":"object","additionalProperties":{}},{"type":"null"}],"default":null}}}`, &want)
	schema, err := json.Marshal(res.Tools[0].InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(schema), &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for _, tt := range []struct {
		name, args, want string
		failed           bool
	}{
		{"rows", `{"data":` + rows + `,"labels":null,"config":{"a":1}}`, `{"anomalies": [{"date": "7", "value": 30}], "std": 7.5813053279887415, "count": 1, "labels": null, "config": {"a": 1}}`, false},
		{"columns", `{"data":{"date":["1"],"value":[3]}}`, `{"anomalies": [], "std": null, "count": 0, "labels": null, "config": null}`, false},
		{"no data", `{}`, "invalid arguments for detect: 1 problem(s) with detect\ndata: is missing", true},
		{"wrong rows", `{"data":[1]}`, "data: cannot be converted to a data frame: rows are objects", true},
		{"exception", `{"data":` + rows + `,"method":"historical"}`, "RuntimeError: there is no history\n  skill anomaly, main.py, line ", true},
	} {
		got, failed := call(t, c, "detect", json.RawMessage(tt.args))
		if failed != tt.failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v %s\nwant %s", tt.name, failed, got, tt.want)
		}
	}
}

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

// The script of a function calls it with JSON arguments, or says how. A script
// that runs by itself does so.
func TestRunningAFunctionsScript(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "anomaly")
	w.approve(t, "itself")
	for _, tt := range []struct {
		skill, stdin   string
		args           []string
		code           int
		stdout, stderr string // stdout is exact
	}{
		{"anomaly", "", []string{`{"data":{"value":[1]}}`}, 0, "{\n  \"anomalies\": [],\n  \"std\": null,\n  \"count\": 0,\n  \"labels\": null,\n  \"config\": null\n}\n", "looking for anomalies"},
		{"anomaly", `{"data":{"value":[1]}}`, []string{"-"}, 0, "{\n  \"anomalies\": [],\n  \"std\": null,\n  \"count\": 0,\n  \"labels\": null,\n  \"config\": null\n}\n", ""},
		{"anomaly", "", nil, 2, "", "main.py has no main program, only the function detect: no arguments."},
		{"anomaly", "", nil, 2, "", `loadout run anomaly main.py -- '{"data": "…"}'`},
		{"anomaly", "", nil, 2, "", `"description": "standard deviations"`},
		{"anomaly", "", []string{"--help"}, 2, "", "the arguments are not JSON"},
		{"anomaly", "", []string{"[1]"}, 2, "", "the arguments are not a single JSON object"},
		{"anomaly", "", []string{`{"threshold":1}`}, 2, "", "invalid arguments for detect: 1 problem(s) with detect\ndata: is missing"},
		{"anomaly", "", []string{`{"data":{"value":[1]},"method":"historical"}`}, 1, "", "detect of skill anomaly failed: RuntimeError: there is no history"},
		{"itself", "", []string{`{"name":"Ann"}`}, 0, "Hello Ann\n", ""},
		{"itself", "", []string{"a", "b"}, 0, "by itself: ['a', 'b']\n", ""},
		{"itself", "", nil, 0, "by itself: []\n", ""},
		{"itself", "a table", []string{"-"}, 0, "by itself: ['-'] a table\n", ""},
		{"itself", `{"name":"Ann"}`, []string{"-"}, 0, "Hello Ann\n", ""},
	} {
		res, err := w.Run(t.Context(), loadout.Run{Skill: tt.skill, Script: "main.py", Args: tt.args, Stdin: strings.NewReader(tt.stdin), Principal: robot})
		if err != nil {
			t.Errorf("%s %q: %v", tt.skill, tt.args, err)
			continue
		}
		if res.ExitCode != tt.code || tt.code == 0 && res.Stdout != tt.stdout || !strings.Contains(res.Stderr, tt.stderr) {
			t.Errorf("%s %q: exit code %d, stdout %q, stderr %q", tt.skill, tt.args, res.ExitCode, res.Stdout, res.Stderr)
		}
	}
}

// An annotation that cannot be evaluated has no effect on the other parameters.
func TestAnnotationThatCannotBeEvaluated(t *testing.T) {
	w := newFixture(t)
	w.approve(t, "checking")
	c, _ := w.dial(t, "checking", nil)
	res, _ := list(t, c)
	schema, err := json.Marshal(res.Tools[0].InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	decode(t, `{"type":"object","required":["table","rows"],"properties":{"table":{},"rows":{"type":"array","items":{"type":"object"}},
		"limit":{"type":"integer","default":10},"names":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"default":null}}}`, &want)
	decode(t, string(schema), &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, failed := call(t, c, "count", json.RawMessage(`{"table":[],"rows":[{"a":1}],"limit":"3"}`)); failed || got != `["list", "DataFrame", 3]` {
		t.Errorf("%v %s", failed, got)
	}
}

// A model gets both parts of a pair, unless the tool declares that the second
// part is an artifact, as in LangChain.
func TestPairs(t *testing.T) {
	w := newFixture(t)
	for _, tt := range []struct{ skill, tool, want string }{
		{"pair", "detect", `["ok", {"anomalies": 1}]`},
		{"pairs", "declared", "the content"},
		{"pairs", "asynchronous", "the content"},
		{"pairs", "decorated", "the content"},
		{"pairs", "classless", "the content"},
		{"pairs", "undeclared", `["the content", {"rows": [1, 2]}]`},
	} {
		w.approve(t, tt.skill)
		c, _ := w.dial(t, tt.skill, nil)
		if got, failed := call(t, c, tt.tool, args{}); failed || got != tt.want {
			t.Errorf("%s: %v %s, want %s", tt.tool, failed, got, tt.want)
		}
	}
}

// The requirements in SKILL.md are installed before the script runs. This
// fixture installs nothing.
func TestRequirementsInSkillFileAreNeeded(t *testing.T) {
	w := newFixture(t)
	file := filepath.Join(w.dir, "anomaly", "SKILL.md")
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(src), "config:", "requirements:\n  - pandas>=2.0\nconfig:", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.approve(t, "anomaly")
	check := func(what string, err error) {
		offline, ok := errors.AsType[*packages.OfflineError](err)
		if !ok || offline.Source != "requirements in SKILL.md" || !cmp.Equal(offline.Needs, []string{"pandas>=2.0"}) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = w.Run(t.Context(), loadout.Run{Skill: "anomaly", Script: "main.py", Principal: robot})
	check("script", err)
	_, err = w.start(t, "anomaly")
	check("tool", err)
}
