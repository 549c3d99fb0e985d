package skill_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func TestRequirementsAreReleasedPythonPackages(t *testing.T) {
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "\n  - p%d", i)
	}
	for _, tt := range []struct {
		yaml  string
		want  []string
		codes []string
	}{
		{"\n  - \"pandas>=2.0.0\"\n  - numpy >=1.24, <3\n  - 'requests[socks]; python_version < \"3.12\"'", []string{"pandas>=2.0.0", "numpy >=1.24, <3", `requests[socks]; python_version < "3.12"`}, nil},
		{"", nil, nil},
		{"Python 3.8+ and a browser", nil, []string{"requirements-not-a-list"}},
		{"\n  a: b", nil, []string{"requirements-not-a-list"}},
		{"\n  - rich\n  - Python 3.8+\n  - --index-url=https://evil.example\n  - x @ https://evil.example/x.whl\n  - git+https://evil.example/x\n  - ./local\n  - a: b\n  -",
			[]string{"rich"}, slices.Repeat([]string{"requirement-invalid"}, 7)},
		{"\n  - " + strings.Repeat("x", 301), nil, []string{"requirement-invalid"}},
		{many.String(), nil, []string{"requirements-too-many"}},
	} {
		s, ds := parse(t, ok+"requirements: "+tt.yaml+"\n", "pdf")
		if diff := cmp.Diff(tt.codes, fieldCodes(ds)); diff != "" {
			t.Errorf("%.60q: %s", tt.yaml, diff)
		}
		if tt.want == nil && len(tt.codes) == 1 && tt.codes[0] == "requirements-too-many" {
			if len(s.Requirements) != 100 {
				t.Errorf("%d requirements", len(s.Requirements))
			}
		} else if diff := cmp.Diff(tt.want, s.Requirements); diff != "" {
			t.Errorf("%.60q: %s", tt.yaml, diff)
		}
	}
}

// fieldCodes returns the codes of the findings about single fields.
func fieldCodes(ds skill.Diagnostics) (out []string) {
	for _, d := range ds {
		if d.Code != "unexpected-fields" && d.Code != "yaml-flow" && d.Code != "metadata-values" {
			out = append(out, d.Code)
		}
	}
	return out
}

// An entrypoint may be relative to the repository that contains the skills.
func TestFunctionIsAProviderInTheEntrypoint(t *testing.T) {
	detect := &skill.Provider{Module: "main", Function: "detect"}
	for _, tt := range []struct {
		yaml  string
		want  *skill.Provider
		file  string
		codes []string
	}{
		{"entrypoint: main.py\nfunction: detect", detect, "main.py", nil},
		{"entrypoint: \"skills/pdf/main.py\"\nfunction: \"detect\"", detect, "main.py", nil},
		{"entrypoint: ./scripts/lib/main.py\nfunction: detect", &skill.Provider{Module: "scripts.lib.main", Function: "detect"}, "scripts/lib/main.py", nil},
		{"entrypoint: skills/other/main.py\nfunction: detect", &skill.Provider{Module: "skills.other.main", Function: "detect"}, "skills/other/main.py", nil},
		{"metadata:\n  entrypoint: main.py\n  function: detect", detect, "main.py", nil},
		{"entrypoint: main.py", nil, "", nil},
		{"function: detect", nil, "", []string{"function-without-entrypoint"}},
		{"entrypoint: main.py\nfunction: os.system", nil, "", []string{"function-invalid"}},
		{"entrypoint: main.py\nfunction: _private", nil, "", []string{"function-invalid"}},
		{"entrypoint: main.py\nfunction: [a]", nil, "", []string{"function-invalid"}},
		{"entrypoint: ../main.py\nfunction: detect", nil, "", []string{"entrypoint-invalid"}},
		{"entrypoint: skills/pdf/../../../main.py\nfunction: detect", nil, "", []string{"entrypoint-invalid"}},
		{"entrypoint: /etc/main.py\nfunction: detect", nil, "", []string{"entrypoint-invalid"}},
		{"entrypoint: main.sh\nfunction: detect", nil, "", []string{"entrypoint-invalid"}},
		{"entrypoint: [main.py]\nfunction: detect", nil, "", []string{"entrypoint-invalid"}},
		{"entrypoint: main.py\nfunction: detect\nprovider: {class: P}", &skill.Provider{Module: "provider", Class: "P"}, "provider.py", []string{"function-and-provider"}},
	} {
		s, ds := parse(t, ok+tt.yaml+"\n", "pdf")
		if diff := cmp.Diff(tt.want, s.Provider); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
		if s.Provider != nil && s.Provider.ModuleFile() != tt.file {
			t.Errorf("%s: file %s, want %s", tt.yaml, s.Provider.ModuleFile(), tt.file)
		}
		if diff := cmp.Diff(tt.codes, fieldCodes(ds)); diff != "" {
			t.Errorf("%s: %s", tt.yaml, diff)
		}
	}
}

func TestExamplesAreShortTexts(t *testing.T) {
	s, ds := parse(t, ok+"examples:\n  - 今天GMV有什么异常？\n  - 检测最近7天的异常波动\n  - "+strings.Repeat("x", 501)+"\n  - input: a\n", "pdf")
	if diff := cmp.Diff([]string{"今天GMV有什么异常？", "检测最近7天的异常波动"}, s.Examples); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"examples-ignored"}, fieldCodes(ds)); diff != "" {
		t.Error(diff)
	}
	if s, _ := parse(t, ok+"examples:"+strings.Repeat("\n  - a", 60)+"\n", "pdf"); len(s.Examples) != 50 {
		t.Errorf("%d examples, want 50", len(s.Examples))
	}
}
