package assembly_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

const (
	loadTides = `call load_skill {"name":"tides"}`
	runTides  = `call run_skill_script {"skill":"tides","script":"high.sh"}`
)

// W20: code of a skill runs only if a reviewer approved its digest. The skill loads as
// instructions in any case. An approval is for one version, and revocation applies
// immediately.
func TestW20CodeRunsWhereApproved(t *testing.T) {
	inSandbox := sandboxed(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db, inSandbox)
		s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run high.sh.", "high.sh", "echo high water at 12:10\n"))
		id := w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides, "Run high.sh.")
		w.ask(w.ada, id, runTides, "its code is not reviewed yet", "ask a reviewer to review it")
		w.review(s, library.Approved)
		id = w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides+"\n"+runTides, "high water at 12:10")

		_, err := w.lib.AddVersion(t.Context(), w.ada, s.ID, w.pack("tides", tree("tides", "", "Run low.sh.", "high.sh", "echo low water\n")))
		must(t, err)
		w.ask(w.ada, id, runTides, "high water at 12:10") // the approved version
		id = w.begin(w.ada, "")
		w.ask(w.ada, id, loadTides, "Run high.sh.")
		w.ask(w.ada, id, runTides, "high water at 12:10")
		w.review(s, library.Rejected)
		w.ask(w.ada, w.begin(w.ada, ""), loadTides+"\n"+runTides, "its code was rejected in review")
	})
}

// Commands of an agent run in the sandbox, on the files of the conversation.
func TestAgentWorksOnItsDirectory(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	id := w.begin(w.ada, "")
	got := w.ask(w.ada, id, `call write_file {"path":"notes/a.txt","content":"three\n"}`+"\n"+`call run_command {"command":"cat notes/a.txt; echo four > b.txt"}`+"\n"+`call list_files {}`)
	if !strings.Contains(got, "b.txt") || !strings.Contains(got, "notes/a.txt") {
		t.Errorf("it has the files %q", got)
	}
	w.ask(w.ada, id, `call read_file {"path":"b.txt"}`, "four")
}

// A script can read a file of the conversation although no tool has used the
// directory in this turn.
func TestScriptReadsFileOfConversation(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run high.sh.", "high.sh", "cat /work/in/table.txt\n"))
	w.review(s, library.Approved)
	w.ask(w.ada, w.begin(w.ada, ""), "hello") // prepares what all conversations of the node share
	id := w.begin(w.ada, "")
	must(t, w.chat.WriteFile(t.Context(), w.ada, id, "table.txt", []byte("low water at 6:01")))
	w.ask(w.ada, id, `call run_skill_script {"skill":"tides","script":"high.sh","inputs":[{"path":"table.txt"}]}`, "low water at 6:01")
}

// The first conversation of a node opens the tools at once, others at the first call.
// Their definitions are equal, they work on the user's own files and skills, and
// concurrent calls open them once.
func TestConversationsShareDefinitions(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run high.sh."))
	first, second := w.begin(w.ada, ""), w.begin(w.bob, "")
	w.ask(w.ada, first, "hello")
	want := w.model.last().Tools
	w.ask(w.bob, second, "hello")
	if got := w.model.last().Tools; !reflect.DeepEqual(got, want) || len(got) < 8 {
		t.Errorf("the second conversation has %d tools:\n%v\nwant\n%v", len(got), got, want)
	}
	other := sqlite(t, sandboxed(t)) // the definitions depend on nothing that differs here
	other.ask(other.eve, other.begin(other.eve, ""), "hello")
	if got := other.model.last().Tools; !reflect.DeepEqual(got, want) {
		t.Errorf("a conversation on another hub has the tools\n%v\nwant\n%v", got, want)
	}
	w.ask(w.ada, first, loadTides, "Run high.sh.")
	w.ask(w.bob, second, loadTides, `"tides" not found`)
	w.ask(w.ada, first, `call write_file {"path":"a.txt","content":"of Ada"}`)
	w.ask(w.bob, second, `call read_file {"path":"a.txt"}`, "no such file")
	w.ask(w.ada, first, `call read_file {"path":"a.txt"}`, "of Ada")

	w.model.answer = func(_ context.Context, _ *script, r *llm.Request) (*llm.Answer, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.User && last.Text() == "" {
			return says("results: " + words(resultParts(last))), nil
		}
		var out llm.Answer
		for _, name := range []string{"list_files", "search_skills", "list_files", "search_skills"} {
			out.Message.Parts = append(out.Message.Parts, calls(name, json.RawMessage("{}")).Message.Parts...)
		}
		out.Message.Role, out.Stop = llm.Assistant, llm.StopTools
		return &out, nil
	}
	got := w.ask(w.ada, first, "all at once")
	if strings.Count(got, "a.txt") != 2 || strings.Count(got, "tides") < 2 {
		t.Errorf("concurrent calls return %q", got)
	}

	narrow := w.ada.LimitedTo(w.ada.Scopes &^ account.ScopeRun)
	w.model.answer = echo
	w.say(narrow, w.begin(narrow, ""), "hello")
	for _, tool := range w.model.last().Tools {
		if tool.Name == "run_command" {
			t.Error("a user who may not run code is offered run_command")
		}
	}
}

// resultParts returns the parts of all results in a message.
func resultParts(m llm.Message) (out []llm.Part) {
	for _, p := range m.Parts {
		if r, ok := p.(llm.Result); ok {
			out = append(out, r.Parts...)
		}
	}
	return out
}
