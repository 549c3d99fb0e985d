package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/llmtest"
)

func TestSkillFilesAreNotInWorkspace(t *testing.T) {
	p := newSomeone(t, needsSandbox(t), "openai", nil, "--skills", "skills", "--workspace", "project")
	if err := os.CopyFS(p.home, os.DirFS(filepath.Join("testdata", "scene"))); err != nil {
		t.Fatal(err)
	}
	p.write(".config/loadout/loadout.yaml", "policy:\n  rules: [allow mcp.workspace.run_command]\n")
	p.write("skills/anomaly_detection/references/three sigma.md", "A rule.\n")
	p.write("skills/anomaly_detection/references/api.md", "An API.\n")
	p.approve("anomaly_detection")
	at := p.path("skills/anomaly_detection")
	const run, read = "run it with run_skill_script", "read it with read_skill_file"
	p.says("检测一下", "", speak("", calling("1", "load_skill", "name", "anomaly_detection")),
		speak("", calling("2", "run_command", "command", "python3 "+at+"/scripts/detect.py gmv.csv GMV"), calling("3", "run_command", "command", "python3 scripts/detect.py gmv.csv GMV"),
			calling("4", "run_command", "command", "cat gmv.csv; false"), calling("5", "run_command", "command", "echo scripts/detect.py"),
			calling("6", "read_file", "path", at+"/references/api.md"), calling("7", "read_file", "path", "./references/api.md"), calling("8", "read_file", "path", "references/gone.md"),
			calling("9", "run_skill_script", "skill", "anomaly_detection", "script", at+"/scripts/detect.py", "args", "/workspace/gmv.csv GMV"),
			calling("10", "read_skill_file", "skill", "anomaly_detection", "path", at+"/references/api.md"),
			calling("11", "read_skill_file", "skill", "anomaly_detection", "path", p.path("project/gmv.csv"))),
		speak("done"))
	p.tells("2", "exit code 2", "scripts/detect.py is a script of the skill anomaly_detection", run)
	p.tells("3", "exit code 2", run)
	p.tells("4", "exit code 1", "!skill")
	p.tells("5", "exit code 0", "!"+run)
	p.tells("6", "not inside the folder", "references/api.md is a file of the skill anomaly_detection", read)
	p.tells("7", "no such file", read)
	p.tells("8", "no such file", "!"+read)
	p.tells("9", "Exit code 0", "异常 1 天")
	p.tells("10", "An API.")
	p.tells("11", "give a file of the skill", "!orders")
}

// workLink is the link of a file that a script left.
var workLink = regexp.MustCompile(`loadout-work://[^\s)"\\]+`)

// A user asks in Chinese about an unusual metric in a table. The model finds the skill
// by its purpose, loads it, runs its script on the table in the sandbox, and saves the
// report beside it. The user allowed the skill to write before it was loaded.
func TestMetricAnomalyConversation(t *testing.T) {
	exe := needsSandbox(t)
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			p := newSomeone(t, exe, wire, nil, "--skills", "skills", "--workspace", "project", "--approve", "ask")
			if err := os.CopyFS(p.home, os.DirFS(filepath.Join("testdata", "scene"))); err != nil {
				t.Fatal(err)
			}
			handOver := llmtest.Turn{From: func(body []byte) llmtest.Turn {
				link := workLink.FindString(resultsIn(t, body)["3"])
				return speak("", calling("4", "write_file", "path", "GMV异动报告.md", "from", link))
			}}
			s := p.says("帮我检测一下GMV的异常波动，数据在 gmv.csv", "yes\n",
				speak("先找合适的技能。", calling("1", "search_skills", "query", "检测GMV的异常波动")),
				speak("", calling("2", "load_skill", "name", "anomaly_detection")),
				speak("", calling("3", "run_skill_script", "skill", "anomaly_detection", "script", "scripts/detect.py",
					"args", []string{"/work/in/gmv.csv", "GMV"}, "inputs", []any{map[string]string{"path": "gmv.csv"}})),
				handOver, speak("1月17日的GMV明显偏低。报告在 GMV异动报告.md。"))
			s.ended(t, 0, "text usage tool_call:1 tool_result:1 usage tool_call:2 ask skill_loaded:anomaly_detection tool_result:2 "+
				"usage tool_call:3 tool_result:3 usage tool_call:4 tool_result:4 text usage done:end")

			hits := p.told()["1"]
			if first, _, _ := strings.Cut(hits[strings.Index(hits, "- ")+2:], ":"); first != "anomaly_detection" {
				t.Errorf("the search finds first %q: %s", first, hits)
			}
			if !strings.Contains(s.stderr, "no prompt  Read, Write, Bash(python:*)") {
				t.Errorf("the user is asked %s", s.stderr)
			}
			p.tells("2", "异动检测分析", "!{baseDir}")
			p.tells("3", "Exit code 0", "异常 1 天", "2026-01-17", "report.md")
			want := "# GMV 异动报告\n\n共 28 天，异常 1 天。\n\n- 2026-01-17：41000，均值 "
			if got := p.read("project/GMV异动报告.md"); !strings.HasPrefix(got, want) {
				t.Errorf("the report is %q", got)
			}
			if text := s.events[len(s.events)-3].Text; !strings.Contains(text, "GMV异动报告.md") {
				t.Errorf("the answer is %q", text)
			}
			p.onlyGrows()
		})
	}
}
