//go:build unix

package agent_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

const killedLog = "LOADOUT_TEST_KILLED_LOG"

// A conversation that was killed still holds the version of a skill of an MCP server
// that it loaded, before and after a compaction that keeps its text.
func TestHeldServedSkillsSurviveCompactionAndKill(t *testing.T) {
	if file := os.Getenv(killedLog); file != "" {
		loadAndDie(t, file, os.Getenv("LOADOUT_TEST_KILLED_COMPACTED") != "")
	}
	for name, compacted := range map[string]string{"loaded": "", "compacted": "yes"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log.jsonl")
			child := exec.Command(os.Args[0], "-test.run=^TestHeldServedSkillsSurviveCompactionAndKill$")
			child.Env = append(os.Environ(), killedLog+"="+file, "LOADOUT_TEST_KILLED_COMPACTED="+compacted)
			out, err := child.CombinedOutput()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v: %s", err, out)
			}
			log, err := session.OpenFileLog(file)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			changed := newGuide()
			changed.files["skill://guide/a.md"] = "Second."
			answer := func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Declined} }
			l := newLibrary(t, log, &approval.MemoryStore{}, policy.NewMemoryStore(), answer, changed.source("docs"))
			l.say(t, calls(llm.Call{ID: "1", Name: "read_skill_file", Arguments: `{"skill":"mcp.docs/guide","path":"a.md"}`}))
			if got := l.lastResult(); !strings.Contains(got, "has changed since it was loaded") || changed.sent != 0 {
				t.Errorf("read %q, %d files sent; want a refusal, as the loaded version is another one", got, changed.sent)
			}
			l.say(t, book("2", "put", "a"))
			if len(l.asked) != 1 || len(l.shelf.called) != 0 || !strings.Contains(l.asked[0].Reason, "mcp.docs/guide") {
				t.Errorf("asked %v, called %v; want one question because of the skill", l.asked, l.shelf.called)
			}
		})
	}
}

// loadAndDie loads a skill in a conversation with the given log, and kills the
// process.
func loadAndDie(t *testing.T, file string, compacted bool) {
	log, err := session.OpenFileLog(file)
	if err != nil {
		t.Fatal(err)
	}
	l := newLibrary(t, log, &approval.MemoryStore{}, policy.NewMemoryStore(), nil, newGuide().source("docs"))
	if _, err := l.session.Load(t.Context(), "mcp.docs/guide", nil); err != nil {
		t.Fatal(err)
	}
	if compacted {
		l.say(t)
		l.model.answers = []*llm.Answer{says("In short.")}
		if err := l.Compact(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	} else if _, err := l.session.Unload(t.Context(), "mcp.docs/guide", "", false); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {}
}
