package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	skillOfTides   = skillText("tides", "Reads tide tables of harbours.", "", "Add one hour in summer.")
	skillOfSecrets = skillText("hush", "Keeps secrets of harbours.", "disable-model-invocation: true\nargument-hint: WHAT\n", "Whisper about $ARGUMENTS.")
)

// B1, B7: the tool that loads a skill works, and the instructions are in the
// conversation afterwards. The error for an unknown skill lists the existing ones.
func TestB1MetaToolRunsEndToEnd(t *testing.T) {
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			p := newSomeone(t, "loadout", wire, map[string]string{"skills/tides/SKILL.md": skillOfTides}, "--skills", "skills")
			p.write(".config/loadout/loadout.yaml", "skills: {bundled: false}\n")
			s := p.says("When is high water?", "",
				speak("", calling("1", "load_skill", "name", "tide")),
				speak("", calling("2", "load_skill", "skill_name", "tides")), // as older models call it
				speak("At noon."))
			s.ended(t, 0, "usage tool_call:1 tool_result:1 usage tool_call:2 skill_loaded:tides tool_result:2 text usage done:end")
			p.tells("1", "tide", "tides")
			p.tells("2", "Add one hour in summer.")
			for _, e := range s.events {
				if e.Result != nil && e.Result.Error != (e.Call.ID == "1") {
					t.Errorf("call %s is reported as an error: %v", e.Call.ID, e.Result.Error)
				}
			}
			p.says("And in summer?", "", speak("At one."))
			p.tells("2", "Add one hour in summer.")
			if n := strings.Count(p.lastBody(), "Add one hour in summer."); n != 1 {
				t.Errorf("the instructions are sent %d times", n)
			}
			if !slices.Contains(p.tools(), "load_skill") {
				t.Errorf("the model has the tools %v", p.tools())
			}
			p.onlyGrows()
		})
	}
}

// tools returns the names of the tools in the last request.
func (p *someone) tools() []string {
	var r struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(p.lastBody()), &r); err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, tool := range r.Tools {
		out = append(out, tool.Name+tool.Function.Name)
	}
	return out
}

// B2: the model gets a list of all skills that it may load, one line each, at the start.
func TestB2ModelGetsSkillList(t *testing.T) {
	p := newSomeone(t, "loadout", "openai", map[string]string{"skills/tides/SKILL.md": skillOfTides, "skills/ships/SKILL.md": skillText("ships", "Knows ships.", "", "Ships are long."), "skills/hush/SKILL.md": skillOfSecrets}, "--skills", "skills")
	p.says("Hello.", "", speak("Hello."))
	var r struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(p.lastBody()), &r); err != nil {
		t.Fatal(err)
	}
	first := r.Messages[0].Content
	if !strings.Contains(first, "\n- ships: [project] Knows ships.\n- tides: [project] Reads tide tables of harbours.\n") || strings.Contains(first, "hush") {
		t.Errorf("the model got first %s", first)
	}
}

// allowing is a user with a project whose skill allows calls of git without a prompt.
func allowing(t *testing.T, config string, args ...string) *someone {
	t.Helper()
	exe := needsSandbox(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	return newSomeone(t, exe, "openai", map[string]string{
		"skills/history/SKILL.md":      skillText("history", "Knows the history of a project.", "allowed-tools: Bash(git:*)\n", "Call git."),
		"project/x":                    "here\n",
		".config/loadout/loadout.yaml": config,
	}, append([]string{"--skills", "skills", "--workspace", "project"}, args...)...)
}

func (p *someone) approve(skill string, args ...string) {
	p.t.Helper()
	if out, err := p.command(append([]string{"approve", skill, "--skills", "skills"}, args...)...).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// B6: the patterns in allowed-tools apply while the skill is active and its digest is
// approved. They restrict nothing and override no rule of the user.
func TestB6AllowedToolsApplyWhileSkillIsActive(t *testing.T) {
	const asks = "needs approval"
	p := allowing(t, "")
	p.says("Is git there?", "", speak("", calling("1", "run_command", "command", "git --version")), speak("no"))
	p.tells("1", asks)
	p.says("Load it.", "", speak("", calling("2", "load_skill", "name", "history")), speak("", calling("3", "run_command", "command", "git --version")), speak("no"))
	p.tells("2", "Call git.")
	p.tells("3", asks) // not approved

	p.approve("history") // which counts from the next load on
	p.says("Again.", "", speak("", calling("3u", "unload_skill", "name", "history")), speak("", calling("3l", "load_skill", "name", "history")),
		speak("", calling("4", "run_command", "command", "git --version")),
		speak("", calling("5", "run_command", "command", "git --version; rm x"), calling("6", "run_command", "command", "git --version && rm x"), calling("7", "run_command", "command", "git --version $(rm x)"),
			calling("8", "run_command", "command", "gitx"), calling("9", "write_file", "path", "y", "content", "z"), calling("10", "read_file", "path", "x")),
		speak("done"))
	p.tells("4", "git version", "[exit code 0]")
	for _, id := range []string{"5", "6", "7", "8", "9"} {
		p.tells(id, asks, "!exit code")
	}
	p.tells("10", "here")

	if out, err := p.command("approve", "--revoke", "history").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.says("And now?", "", speak("", calling("10r", "run_command", "command", "git --version")), speak("no"))
	p.tells("10r", asks) // active, but no longer approved
	p.approve("history")
	p.says("And now?", "", speak("", calling("10a", "run_command", "command", "git --version")), speak("", calling("11", "unload_skill", "name", "history")),
		speak("", calling("12", "run_command", "command", "git --version")), speak("done"))
	p.tells("10a", "git version")
	p.tells("11", "Unloaded history.")
	p.tells("12", asks)
	if got := p.read("project/x"); got != "here\n" {
		t.Errorf("a command that was not allowed left %q", got)
	}

	// Other bytes are another skill.
	p.write("skills/history/SKILL.md", strings.ReplaceAll(p.read("skills/history/SKILL.md"), "Bash(git:*)", "Bash"))
	p.says("Load it again.", "", speak("", calling("13", "load_skill", "name", "history")), speak("", calling("14", "run_command", "command", "git --version")), speak("no"))
	p.tells("14", asks)
}

// B6: the user's own rules precede those of a skill.
func TestB6UserRulesWin(t *testing.T) {
	for rule, want := range map[string]string{"deny mcp.workspace.run_command": "deny", "ask mcp.workspace.run_command": "needs approval"} {
		t.Run(rule, func(t *testing.T) {
			p := allowing(t, "policy:\n  rules: ['"+rule+"']\n")
			p.approve("history")
			p.says("Go.", "", speak("", calling("1", "load_skill", "name", "history")), speak("", calling("2", "run_command", "command", "git --version")), speak("no"))
			p.tells("2", want, "!git version")
		})
	}
}

// B6: the model that an approved skill names is used while the skill is active, in that
// conversation only. An unconfigured model is ignored and reported.
func TestB6SkillModelAppliesWhileActive(t *testing.T) {
	p := newSomeone(t, "loadout", "openai", map[string]string{
		"skills/deep/SKILL.md":  skillText("deep", "Thinks hard.", "model: thinker\n", "Think."),
		"skills/wrong/SKILL.md": skillText("wrong", "Wants a model.", "model: nobody\n", "Think."),
	}, "--skills", "skills")
	p.write(".config/loadout/loadout.yaml", "models:\n  names: {thinker: {model: openai:large, base_url: "+p.server.URL+"/v1}}\n")
	p.approve("wrong")
	p.says("Think.", "", speak("", calling("1", "load_skill", "name", "deep")), speak("I thought."))
	if got := p.models(); !slices.Equal(got, []string{"small", "small"}) {
		t.Errorf("a skill that was not approved chooses: %v", got)
	}
	p.session = ""
	p.approve("deep")
	p.says("Think.", "", speak("", calling("2", "load_skill", "name", "deep")), speak("I thought."))
	p.says("More.", "", speak("", calling("3", "unload_skill", "name", "deep")), speak("Enough."))
	p.session = ""
	s := p.says("Think.", "", speak("", calling("4", "load_skill", "name", "wrong")), speak("", calling("5", "load_skill", "name", "wrong")), speak("I thought."))
	if got, want := p.models()[2:], []string{"small", "large", "large", "small", "small", "small", "small"}; !slices.Equal(got, want) {
		t.Errorf("asked are %v, want %v", got, want)
	}
	s.ended(t, 0, "usage tool_call:4 skill_loaded:wrong tool_result:4 notice usage tool_call:5 tool_result:5 text usage done:end")
}

// models returns the models that were used.
func (p *someone) models() []string {
	var out []string
	for _, body := range p.server.Bodies() {
		var r struct{ Model string }
		if err := json.Unmarshal(body, &r); err != nil {
			p.t.Fatal(err)
		}
		out = append(out, r.Model)
	}
	return out
}

// B6: a skill that is not for models is none for the model, neither by name nor in a
// search, and its scripts are not run.
func TestB6DisabledForTheModel(t *testing.T) {
	p := newSomeone(t, needsSandbox(t), "anthropic", map[string]string{"skills/hush/SKILL.md": skillOfSecrets, "skills/hush/more.sh": "echo more secrets\n"}, "--skills", "skills")
	p.says("Tell me.", "", speak("", calling("1", "load_skill", "name", "hush"), calling("2", "search_skills", "query", "secrets of harbours"), calling("3", "run_skill_script", "skill", "hush", "script", "more.sh")), speak("no"))
	p.tells("1", "only users", "!Whisper")
	p.tells("2", "!hush")
	p.tells("3", "only users", "!more secrets")
}

func TestSavedSkillIsLoadableInTheSameConversation(t *testing.T) {
	p := newSomeone(t, "loadout", "openai", map[string]string{"project/README": "x\n"}, "--workspace", "project", "--approve", "ask")
	save := func(id string) []any {
		return []any{"name", "knots", "description", "Ties knots. Use for ropes.", "instructions", "Begin with a loop. See references/loops.md.",
			"files", []any{map[string]string{"path": "references/loops.md", "content": "Loops are round " + id + ".\n"}}}
	}
	s := p.says("Keep how to tie knots.", "no\nyes\n",
		speak("", calling("1", "save_skill", save("1")...)), speak("", calling("2", "load_skill", "name", "knots")),
		speak("", calling("3", "save_skill", save("3")...)), speak("", calling("4", "load_skill", "name", "knots"), calling("5", "read_skill_file", "skill", "knots", "path", "references/loops.md")), speak("Kept."))
	s.inOrder(t, "tool_call:1", "ask", "tool_result:1", "usage", "tool_call:2", "tool_result:2", "usage", "tool_call:3", "ask", "tool_result:3", "usage", "tool_call:4", "skill_loaded:knots", "tool_result:4", "text", "usage", "done:end")
	p.tells("1", "declined")
	p.tells("2", "knots", "!Begin with a loop")
	p.tells("3", "Saved the skill knots", "can be loaded now")
	p.tells("4", "Begin with a loop.")
	p.tells("5", "Loops are round 3.")
	if got := p.read("project/.loadout/skills/knots/SKILL.md"); !strings.Contains(got, "name: knots\n") || !strings.Contains(got, "Begin with a loop.") {
		t.Errorf("saved is %q", got)
	}
	p.says("Thanks.", "", speak("Fine."))
	if n := strings.Count(p.lastBody(), "- knots: Ties knots. Use for ropes."); n != 1 {
		t.Errorf("the model got of it %d times", n)
	}
	p.onlyGrows()
}

// The skills of a workspace are those of a project: a symlink does not lead out.
func TestWorkspaceSkillsDoNotLeadOutOfTheWorkspace(t *testing.T) {
	p := newSomeone(t, "loadout", "openai", map[string]string{
		"elsewhere/secret/SKILL.md":              skillText("secret", "Knows all secrets.", "", "Tell them."),
		"project/.loadout/skills/knots/SKILL.md": skillText("knots", "Ties knots.", "", "Begin."),
	}, "--workspace", "project")
	if err := os.Symlink(p.path("elsewhere"), p.path("project/.loadout/skills/away")); err != nil {
		t.Skip(err)
	}
	p.says("Hello.", "", speak("Hello."))
	if body := p.lastBody(); !strings.Contains(body, "Ties knots.") || strings.Contains(body, "Knows all secrets.") {
		t.Errorf("the model is sent %s", body)
	}
}

// What cannot be saved is refused whole, with all that is wrong, and nothing is written.
func TestInvalidSkillsAreNotSaved(t *testing.T) {
	const old = "---\nname: knots\ndescription: The old ones.\n---\nOld.\n"
	good := []any{"name", "knots", "description", "Ties knots.", "instructions", "Begin."}
	for _, tt := range []struct {
		name, rules string
		link        bool // .loadout leads out of the project
		args        []any
		want        []string
		saved       bool
	}{
		{name: "invalid", args: []any{"name", "Knots And More", "description", "", "instructions", "x", "files", []any{map[string]string{"path": "../up", "content": ""}}}, want: []string{"Knots And More", "description", "../up"}},
		{name: "there already", args: good, want: []string{"already exists", "replace"}},
		{name: "replaced", args: append(good, "replace", true), want: []string{"Saved the skill knots"}, saved: true},
		{name: "a link out of the project", link: true, args: good, want: []string{".loadout", "without symlinks"}},
		{name: "denied", rules: ", deny mcp.workspace.save_skill", args: good, want: []string{"deny mcp.workspace.save_skill"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newSomeone(t, "loadout", "openai", map[string]string{"elsewhere/x": "", "project/x": "",
				".config/loadout/loadout.yaml": "policy:\n  rules: [allow mcp.workspace.save_skill" + tt.rules + "]\n"}, "--workspace", "project")
			if tt.link {
				if err := os.Symlink(p.path("elsewhere"), p.path("project/.loadout")); err != nil {
					t.Skip(err)
				}
			} else {
				p.write("project/.loadout/skills/knots/SKILL.md", old)
			}
			p.says("Keep it.", "", speak("", calling("1", "save_skill", tt.args...)), speak("no"))
			p.tells("1", tt.want...)
			if got := p.read("project/.loadout/skills/knots/SKILL.md"); !tt.link && (got == old) == tt.saved {
				t.Errorf("now there is %q", got)
			}
			if found, err := filepath.Glob(p.path("elsewhere/*")); err != nil || len(found) != 1 {
				t.Errorf("elsewhere there are %v, %v", found, err)
			}
			if left, err := filepath.Glob(p.path("project/.loadout/skills/.*")); err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// One question before a load is about all that the skill will need: its scripts, its
// server, and the server's tools. The answer holds for this conversation, also in
// another process, or for all; without leave the skill is loaded without them.
func TestPromptBeforeLoad(t *testing.T) {
	for _, tt := range []struct {
		answer       string
		runs, always bool
	}{
		{"yes\n", true, false}, {"always\n", true, true}, {"no\n", false, false}, {"", false, false},
	} {
		t.Run(strings.TrimSpace(tt.answer), func(t *testing.T) {
			p := captain(t, "openai")
			p.write("skills/ledger/sum.py", "print(6 * 7)\n")
			s := p.says("Load it.", tt.answer, speak("", calling("1", "load_skill", "name", "ledger")),
				speak("", calling("1s", "run_skill_script", "skill", "ledger", "script", "sum.py"), through("1p", "ledger_book__post", "sum", 1)), speak("done"))
			s.ended(t, 0, "usage tool_call:1 ask skill_loaded:ledger tool_result:1 usage tool_call:1s tool_result:1s tool_call:1p tool_result:1p text usage done:end")
			p.tells("1", "Post each transfer")
			p.tells("1s", map[bool]string{true: "42", false: "may not run scripts"}[tt.runs])
			p.tells("1p", map[bool]string{true: `post {"sum": 1}`, false: "not approved"}[tt.runs])
			for _, want := range []string{"ledger", "server.py", "book: python3 server.py book", "sha256:"} {
				if !strings.Contains(s.stderr, want) {
					t.Errorf("the question does not contain %q: %s", want, s.stderr)
				}
			}
			if !tt.runs {
				return
			}
			s = p.says("Again.", "", speak("", calling("2", "load_skill", "name", "ledger"), calling("2s", "run_skill_script", "skill", "ledger", "script", "sum.py"), through("2p", "ledger_book__post", "sum", 2)), speak("done"))
			s.ended(t, 0, "usage tool_call:2 tool_result:2 tool_call:2s tool_result:2s tool_call:2p tool_result:2p text usage done:end")
			p.tells("2s", "42")
			p.tells("2p", `post {"sum": 2}`)

			p.session = ""
			s = p.says("Load it.", "no\n", speak("", calling("3", "load_skill", "name", "ledger")), speak("", calling("3s", "run_skill_script", "skill", "ledger", "script", "sum.py"), through("3p", "ledger_book__post", "sum", 3)), speak("done"))
			if asked := strings.Contains(s.order(), "ask"); asked == tt.always {
				t.Errorf("in another conversation the user is asked: %v", asked)
			}
			p.tells("3s", map[bool]string{true: "42", false: "may not run scripts"}[tt.always])
			p.tells("3p", map[bool]string{true: `post {"sum": 3}`, false: "not approved"}[tt.always])
		})
	}
}
