package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

func newGuide() *publisher {
	return &publisher{files: map[string]string{guideURI: "---\nname: guide\ndescription: Guides\n---\nSee a.md.\n", "skill://guide/a.md": "First."}}
}

func (p *publisher) source(label string) *serverskill.Source {
	return serverskill.New(serverskill.Options{Label: label, Connector: p, Wait: true})
}

// say runs a turn in which the model makes the given calls, one in each response.
func (l *library) say(t *testing.T, all ...*llm.Answer) {
	t.Helper()
	l.model.answers = append(all, says("Done."))
	if err := l.RunTurn(t.Context(), "Go on.", nil); err != nil {
		t.Fatal(err)
	}
}

// approveServed stores the user's approval of a skill, as loadout approve does.
func (l *library) approveServed(t *testing.T, ref string, tools bool) {
	t.Helper()
	request, err := l.rt.ReadApprovalRequest(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	r := review.New(request, review.Options{})
	for _, g := range append([]policy.Grant{r.Grant()}, r.ServedGrants(tools)...) {
		if _, err := l.approvals.Put(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *library) lastResult() string {
	events := l.session.Events(0)
	for _, e := range slices.Backward(events) {
		if e.Result != nil {
			return e.Result.Text
		}
	}
	return ""
}

// While the text of a skill of an MCP server is in the conversation and the user did
// not approve the skill, each call of a tool that may do something needs approval.
func TestToolsNeedApprovalWhileServedSkillsAreInContext(t *testing.T) {
	p := newGuide()
	src := p.source("docs")
	answer := func(approval.Request) *approval.Answer {
		return &approval.Answer{Outcome: approval.Accepted, Scope: policy.Always}
	}
	l := newLibrary(t, &session.MemoryLog{}, &approval.MemoryStore{}, policy.NewMemoryStore(), answer, src)
	l.model.answers = nil
	expect := func(when string, asked int, tool string) {
		t.Helper()
		before, called := len(l.asked), len(l.shelf.called)
		l.say(t, book("1", tool, "a"), book("2", tool, "a"))
		if got := len(l.asked) - before; got != asked || len(l.shelf.called)-called != 2 {
			t.Errorf("%s: asked %d times for %d calls (%s); want %d for 2", when, got, len(l.shelf.called)-called, l.lastResult(), asked)
		}
		for _, about := range l.asked[before:] {
			if asked == 2 && !strings.Contains(about.Reason, "skill mcp.docs/guide: the text of this skill of an MCP server") {
				t.Errorf("%s: asked because %q, want the skill", when, about.Reason)
			}
		}
	}
	expect("before the load", 1, "put") // and allowed always
	if _, err := l.session.Load(t.Context(), "mcp.docs/guide", nil); err != nil {
		t.Fatal(err)
	}
	expect("with the skill", 2, "put")
	expect("a tool that only reads", 1, "look") // because of its risk level, and allowed always
	if _, err := l.session.Unload(t.Context(), "mcp.docs/guide", "", false); err != nil {
		t.Fatal(err)
	}
	expect("after the skill was unloaded", 2, "put")
	l.approveServed(t, "mcp.docs/guide", false)
	expect("with the approval of the skill", 0, "put")
	p.mu.Lock()
	p.files["skill://guide/b.md"] = "Added."
	p.mu.Unlock()
	if err := errors.Join(src.Find(t.Context(), "guide"), l.rt.Catalog().Reload(t.Context())); err != nil {
		t.Fatal(err)
	}
	expect("after another list of files", 2, "put")
	if err := l.session.Append(t.Context(), session.Event{Compacted: &session.Compaction{Text: "In short."}}); err != nil {
		t.Fatal(err)
	}
	expect("after its text left the conversation", 0, "put")
}

// While the text of a skill of one server is in the conversation, the user is asked
// about each read from another server. The prompt names both servers.
func TestReadsAcrossServersAreConfirmed(t *testing.T) {
	p, other := newGuide(), newGuide()
	outcome := approval.Declined
	answer := func(approval.Request) *approval.Answer {
		return &approval.Answer{Outcome: outcome, Scope: policy.Always}
	}
	l := newLibrary(t, &session.MemoryLog{}, &approval.MemoryStore{}, policy.NewMemoryStore(), answer, p.source("docs"), other.source("other"))
	call := func(tool string, args map[string]any) *llm.Answer {
		js, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return calls(llm.Call{ID: "1", Name: tool, Arguments: string(js)})
	}
	load := call("load_skill", map[string]any{"name": "mcp.other/guide"})
	byURI := call("load_skill", map[string]any{"name": "mcp.other/" + guideURI})
	read := call("read_skill_file", map[string]any{"skill": "mcp.other/guide", "path": "a.md"})
	expect := func(when string, asked, sent int, want string, all ...*llm.Answer) {
		t.Helper()
		before, had := len(l.asked), other.sent
		l.say(t, all...)
		if len(l.asked)-before != asked || other.sent-had != sent || !strings.Contains(l.lastResult(), want) {
			t.Errorf("%s: asked %d times, %d files sent, result %q; want %d, %d, %q", when, len(l.asked)-before, other.sent-had, l.lastResult(), asked, sent, want)
		}
		for _, about := range l.asked[before:] {
			if !strings.Contains(about.Reason, "MCP server docs") || !strings.Contains(about.Reason, "MCP server other") {
				t.Errorf("%s: asked because %q, want both servers", when, about.Reason)
			}
		}
	}
	if _, err := l.session.Load(t.Context(), "mcp.docs/guide", nil); err != nil {
		t.Fatal(err)
	}
	expect("declined", 2, 0, "not allowed", load, byURI)
	outcome = approval.Accepted
	expect("accepted", 1, 1, "See a.md", load)
	expect("each read", 2, 1, "First.", read, read) // the second one is answered from the cache
	expect("a skill of the user", 0, 0, "Read.", call("load_skill", map[string]any{"name": "books"}))
}

// The allowed-tools of a skill of an MCP server count only after the user granted
// them, for exactly these files and tools.
func TestAllowedToolsOfServedSkillsNeedTheirOwnGrant(t *testing.T) {
	p := newGuide()
	p.tools = `,"allowed-tools":"mcp.shelf.put(a*)"`
	p.files[guideURI] = "---\nname: guide\ndescription: Guides\nallowed-tools: mcp.shelf.put(a*)\n---\nSee a.md.\n"
	src := p.source("docs")
	answer := func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Accepted} }
	l := newLibrary(t, &session.MemoryLog{}, &approval.MemoryStore{}, policy.NewMemoryStore(), answer, src)
	expect := func(when string, asked int) {
		t.Helper()
		before := len(l.asked)
		if _, err := l.session.Load(t.Context(), "mcp.docs/guide", nil); err != nil {
			t.Fatal(err)
		}
		l.say(t, book("1", "put", "a"))
		if got := len(l.asked) - before; got != asked {
			t.Errorf("%s: asked %d times (%s), want %d", when, got, fmt.Sprint(l.asked[before:]), asked)
		}
	}
	expect("without approval", 1)
	l.approveServed(t, "mcp.docs/guide", false)
	expect("with the approval of the skill", 1)
	l.approveServed(t, "mcp.docs/guide", true)
	expect("with the grant", 0)
	p.mu.Lock()
	p.files["skill://guide/b.md"] = "Added."
	p.mu.Unlock()
	if err := errors.Join(src.Find(t.Context(), "guide"), l.rt.Catalog().Reload(t.Context())); err != nil {
		t.Fatal(err)
	}
	expect("after another list of files", 1)
	l.approveServed(t, "mcp.docs/guide", false)
	expect("with the approval of the new files", 1)
}

// A SKILL.md that arrives as the result of a tool, or that is read as a file, is no
// loaded skill.
func TestPlainReadsLoadNoSkill(t *testing.T) {
	p := newGuide()
	answer := func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Accepted} }
	l := newLibrary(t, &session.MemoryLog{}, &approval.MemoryStore{}, policy.NewMemoryStore(), answer, p.source("docs"))
	l.shelf.texts = map[string]string{guideURI: p.files[guideURI]}
	l.say(t, book("1", "look", guideURI))
	if got := l.lastResult(); !strings.Contains(got, "name: guide") {
		t.Fatalf("result %q, want the SKILL.md", got)
	}
	for _, file := range []string{"SKILL.md", "a.md"} {
		l.say(t, calls(llm.Call{ID: "2", Name: "read_skill_file", Arguments: `{"skill":"mcp.docs/guide","path":"` + file + `"}`}))
		if got := l.lastResult(); !strings.Contains(got, "is not loaded") || p.sent != 0 {
			t.Errorf("%s: result %q, %d files sent; want a refusal", file, got, p.sent)
		}
	}
	if acting := l.session.SkillsInContext(); len(acting) != 0 {
		t.Errorf("%v act, want no skill", acting)
	}
}
