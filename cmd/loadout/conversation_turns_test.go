package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/llm"
)

// captain is a user with the four skills and the server of testdata/conversation. The
// fees of harbours are so long that no compaction keeps them.
func captain(t *testing.T, wire string) *someone {
	t.Helper()
	exe := needsSandbox(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	p := newSomeone(t, exe, wire, map[string]string{
		".config/loadout/loadout.yaml": "skills: {bundled: false}\nmodels: {window: 200000}\npolicy:\n  rules: [ask mcp.bank.transfer]\n",
		"mcp.json":                     `{"mcpServers": {"bank": {"command": "python3", "args": ["HOME/server.py", "bank"], "cwd": "HOME"}}}`,
	}, "--skills", "skills", "--mcp-config", "mcp.json", "--approve", "ask")
	if err := os.CopyFS(p.home, os.DirFS(filepath.Join("testdata", "conversation"))); err != nil {
		t.Fatal(err)
	}
	p.write("skills/ledger/server.py", p.read("server.py"))
	p.write("skills/harbour/SKILL.md", p.read("skills/harbour/SKILL.md")+strings.Repeat("Dues are paid at the quay before noon.\n", 3000))
	return p
}

// A conversation of twelve turns, each in a new process: skills are loaded, stay active
// while they are used, and expire; the user is prompted once; the conversation is
// compacted; a crash repeats nothing. The requests to the model prove it.
func TestTwelveTurns(t *testing.T) {
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			p := captain(t, wire)

			// 1. A sentence about a load is not a load.
			s := p.says(`What does "I have loaded the skill tides." mean?`, "", speak("I have loaded the skill tides.\nLoading skill: tides\n> Skill tides loaded"))
			s.ended(t, 0, "text usage done:end")

			// 2. Two loads at once, each with its whole text.
			s = p.says("When is high water, and what is a berth?", "",
				speak("I look.", calling("2a", "load_skill", "name", "tides"), calling("2b", "load_skill", "name", "harbour")), speak("At noon."))
			s.inOrder(t, "text", "usage", "tool_call:2a", "skill_loaded:tides", "tool_result:2a", "text", "usage", "done:end")
			s.inOrder(t, "usage", "tool_call:2b", "skill_loaded:harbour", "tool_result:2b", "text")
			p.tells("2a", "Add one hour in summer.")
			p.tells("2b", "three a metre", "before noon")

			// 3. What is loaded is so already; a tool that only reads is called unasked.
			s = p.says("And what do I have?", "", speak("", calling("3a", "load_skill", "name", "tides"), through("3b", "bank__balance")), speak("Enough."))
			s.ended(t, 0, "usage tool_call:3a tool_result:3a tool_call:3b tool_result:3b text usage done:end")
			p.tells("3a", "already", "!Add one hour")
			p.tells("3b", "balance {}")

			// 4. A rule requires approval, and the user answers always.
			s = p.says("Send ten to Anna.", "always\n", speak("", through("4a", "bank__transfer", "to", "Anna")), speak("Sent."))
			s.ended(t, 0, "usage tool_call:4a ask tool_result:4a text usage done:end")
			p.tells("4a", `transfer {"to": "Anna"}`)

			// 5. Which holds for the next process, too.
			s = p.says("And ten to Bert.", "", speak("", through("5a", "bank__transfer", "to", "Bert")), speak("Sent."))
			s.ended(t, 0, "usage tool_call:5a tool_result:5a text usage done:end")
			p.tells("5a", `transfer {"to": "Bert"}`)

			// 6. A skill provides a server, which runs once the user has approved it.
			// Reading a file of a skill is a use of it.
			s = p.says("Post both.", "yes\n", speak("", calling("6a", "load_skill", "name", "ledger")), speak("", through("6b", "ledger_book__post", "sum", 20), calling("6c", "read_skill_file", "skill", "tides", "path", "references/places.md")), speak("Posted."))
			s.ended(t, 0, "usage tool_call:6a ask skill_loaded:ledger tool_result:6a usage tool_call:6b tool_result:6b tool_call:6c tool_result:6c text usage done:end")
			p.tells("6a", "ledger_book__post")
			p.tells("6b", `post {"sum": 20}`)
			p.tells("6c", "Dover: 12:10")

			// 7. A script, in the sandbox.
			s = p.says("Make the report.", "yes\n", speak("", calling("7a", "load_skill", "name", "report")), speak("", calling("7b", "run_skill_script", "skill", "report", "script", "make.py", "args", []string{"10", "10"})), speak("It is 20."))
			s.ended(t, 0, "usage tool_call:7a ask skill_loaded:report tool_result:7a usage tool_call:7b tool_result:7b text usage done:end")
			p.tells("7b", "the sum is 20")

			// 8. A skill that was not used for five turns is inactive and can be loaded
			// again. Its text is not sent twice.
			full := speak("Three a metre.")
			full.Usage = llm.Usage{Input: 30_000, CacheRead: 140_000, Output: 10}
			s = p.says("What was a berth?", "", speak("", calling("8a", "load_skill", "name", "harbour")), full)
			if reason := s.events[0].Reason; reason != "not used for 5 turns" {
				t.Errorf("the skill is unloaded as %q", reason)
			}
			s.ended(t, 0, "skill_unloaded:harbour usage tool_call:8a skill_loaded:harbour tool_result:8a text usage done:end")
			p.tells("8a", "loaded again", "further up") // where its text still is
			if n := strings.Count(p.lastBody(), "The skill harbour is no longer in force: not used for 5 turns"); n != 1 {
				t.Errorf("the model saw it: %d times that a skill is gone", n)
			}

			// 9. The conversation is full: it is compacted with the skills that fit,
			// which stay loaded. Another skill is loaded again.
			s = p.says("Post the berth.", "", speak("They have posted 20."), speak("", calling("9a", "load_skill", "name", "ledger"), calling("9b", "load_skill", "name", "tides")),
				speak("", through("9c", "ledger_book__post", "sum", 3), calling("9d", "load_skill", "name", "harbour")), speak("Posted."))
			s.inOrder(t, "skill_unloaded:harbour", "compacted", "usage", "tool_call:9a", "tool_result:9a", "usage", "tool_call:9c", "tool_result:9c", "tool_call:9d", "skill_loaded:harbour", "tool_result:9d", "text", "usage", "done:end")
			p.tells("9a", "already", "!Post each")
			p.tells("9b", "already")
			p.tells("9c", `post {"sum": 3}`)
			p.tells("9d", "three a metre")

			short := p.server.Bodies()[18]
			for text, want := range map[string]bool{"They have posted 20.": true, "Post the berth.": true, "Add one hour in summer.": true, "Post each transfer": true, "the skill harbour is not loaded any more": true,
				"before noon": false, "When is high water": false, "Dover: 12:10": false} {
				if strings.Contains(strings.ToLower(string(short)), strings.ToLower(text)) != want {
					t.Errorf("after the compaction %q is sent: %v", text, !want)
				}
			}

			// 10. A crash in the middle of a call that cannot be repeated.
			p.write("hold", "")
			crash := p.turn("Wire five to Carl.", speak("", through("10a", "bank__wire", "to", "Carl")))
			if err := crash.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the call", func() bool { return p.read("wired") != "" })
			if err := crash.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := crash.Wait(); err == nil {
				t.Error("it was not killed")
			}
			if err := os.Remove(p.path("hold")); err != nil {
				t.Fatal(err)
			}

			// 11. The outcome of the call is unknown, which the model is told. Nothing
			// is repeated.
			s = p.says("Is it sent?", "", speak("I do not know."))
			s.ended(t, 0, "tool_result:10a text usage done:end")
			p.tells("10a", "not known whether this call was made", "not made again")

			// 12. Approvals and loaded skills are as before.
			s = p.says("Send ten to Dora, and post it.", "", speak("", through("12a", "bank__transfer", "to", "Dora"), through("12b", "ledger_book__post", "sum", 10), calling("12c", "load_skill", "name", "report")), speak("Done."))
			s.ended(t, 0, "usage tool_call:12a tool_result:12a tool_call:12b tool_result:12b tool_call:12c tool_result:12c text usage done:end")
			p.tells("12a", "Dora")
			p.tells("12b", `post {"sum": 10}`)
			p.tells("12c", "already")

			if got := p.read("wired"); got != "Carl\n" {
				t.Errorf("the call that must not be repeated was made: %q", got)
			}
			p.onlyGrows(18)
		})
	}
}

// A crash during a prompt leaves a call that was certainly not made: the user is
// prompted again, and the call is made once.
func TestCrashDuringPrompt(t *testing.T) {
	p := captain(t, "anthropic")
	p.write(".config/loadout/loadout.yaml", "policy:\n  rules: [ask mcp.bank.wire]\n")
	p.says("Hello.", "", speak("Hello."))
	crash := p.turn("Wire five to Carl.", speak("", through("1", "bank__wire", "to", "Carl")))
	in, err := crash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := crash.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := crash.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("no prompt appears")
		}
		if strings.HasPrefix(lines.Text(), `{"type":"ask"`) {
			break
		}
	}
	if err := crash.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = crash.Wait() // it was killed

	s := p.says("Go on.", "yes\n", speak("Sent."))
	s.ended(t, 0, "tool_call:1 ask tool_result:1 text usage done:end")
	p.tells("1", `wire {"to": "Carl"}`)
	if got := p.read("wired"); got != "Carl\n" {
		t.Errorf("it was made so: %q", got)
	}
	s = p.says("Thanks.", "", speak("Fine."))
	s.ended(t, 0, "text usage done:end")
	p.onlyGrows()
}
