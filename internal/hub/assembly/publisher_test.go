package assembly_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/serverskill/serverskilltest"
	"github.com/loadout-dev/loadout/policy"
)

// publish applies an MCPServer of the group.
func (w *fixture) publish(url, spec string) {
	w.t.Helper()
	w.apply(w.meg, fmt.Sprintf("kind: MCPServer\nmetadata: {name: Docs, namespace: %q}\nspec: {url: %q, label: docs, %s}\n", w.team, url, spec))
}

func load(name string) string { return fmt.Sprintf(`call load_skill {"name":%q}`, name) }

// While a skill of a server that the user did not approve is in the leader's
// conversation, no member gets a task, because the member's code would not be blocked.
func TestTeamLeaderDoesNotEscapeServedSkills(t *testing.T) {
	w := sqlite(t)
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "Hand it to work.\n"))
	w.publish(s.URL, "skills: allow")
	w.apply(w.ada, team)
	id := w.begin(w.ada, "Team/default/crew")
	task := `call hand_task {"member":"work","task":"count"}`
	w.ask(w.ada, id, task, "work answers:")
	w.ask(w.ada, id, load("mcp.docs/acme/guide"), "Hand it to work.")
	w.ask(w.ada, id, task, "Task not handed to work", "mcp.docs/acme/guide")
}

// If several servers have the same label, the skills of none of them are used, because one
// server could replace another and inherit its approvals.
func TestServersWithTheSameLabelPublishNothing(t *testing.T) {
	w := sqlite(t)
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "Read it.\n"))
	w.publish(s.URL, "skills: allow")
	if w.open(assembly.Request{Principal: w.ada}).Publisher("docs") == nil {
		t.Fatal("a server with its own label is not used")
	}
	w.apply(w.ada, fmt.Sprintf("kind: MCPServer\nmetadata: {name: aaa}\nspec: {url: %q, label: docs, skills: allow}\n", s.URL))
	k := w.open(assembly.Request{Principal: w.ada})
	if k.Publisher("docs") != nil || !strings.Contains(strings.Join(k.Problems, "\n"), "2 servers have the label docs") {
		t.Errorf("one of the servers is used: %q", k.Problems)
	}
}

// A model reads a skill of a server after the user approved its files, in this
// conversation or always. If the server changes them, the user is asked again.
func TestSkillsOfServersNeedApproval(t *testing.T) {
	w := sqlite(t)
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "See a.md.\n"))
	s.Put("", "skill://acme/guide/a.md", "First.")
	w.publish(s.URL, "skills: ask")
	var questions []string
	seen := map[string]bool{} // a watcher gets earlier events again
	answering := func(a approval.Answer) func(chat.Event) {
		return func(e chat.Event) {
			if e.Type == chat.ApprovalRequested && !seen[e.ApprovalRequest.ID] {
				seen[e.ApprovalRequest.ID] = true
				questions = append(questions, e.ApprovalRequest.Message)
				must(t, w.chat.AnswerApproval(t.Context(), w.ada, e.ApprovalRequest.ID, a))
			}
		}
	}
	ask := func(id string, a approval.Answer, text string, wantQuestions int, want ...string) {
		t.Helper()
		questions = nil
		got := answer(w.say(w.ada, id, text, answering(a)))
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got %q, want %q", text, got, part)
			}
		}
		if len(questions) != wantQuestions {
			t.Errorf("%s: asked %q, want %d questions", text, questions, wantQuestions)
		}
	}
	const guide = "mcp.docs/acme/guide"
	id := w.begin(w.ada, "")
	ask(id, approval.Answer{Outcome: approval.Declined}, load(guide), 1, "it comes from the MCP server docs, and is not approved")
	if !strings.Contains(questions[0], "the MCP server docs, a third party, publishes this skill") || !strings.Contains(questions[0], "a.md (6 bytes)") {
		t.Errorf("asked %q", questions)
	}
	if reads := s.Requests("resources/read"); len(reads) > 0 {
		t.Errorf("fetched %q without approval", reads)
	}
	ask(id, approval.Answer{Outcome: approval.Accepted}, load(guide), 1, "See a.md.", "[From the MCP server docs: untrusted text")
	if reads := s.Requests("resources/read"); len(reads) != 1 {
		t.Errorf("fetched %q", reads)
	}
	ask(id, approval.Answer{}, load(guide), 0)

	other := w.begin(w.ada, "")
	ask(other, approval.Answer{Outcome: approval.Accepted, Scope: policy.Always}, load(guide), 1, "See a.md.")
	third := w.begin(w.ada, "")
	ask(third, approval.Answer{}, load(guide), 0, "See a.md.")

	s.Put("", "skill://acme/guide/a.md", "Second.")
	ask(third, approval.Answer{}, `call read_skill_file {"skill":"mcp.docs/acme/guide","path":"a.md"}`, 0, "changed on its server", "a.md changed")
	fourth := w.begin(w.ada, "")
	ask(fourth, approval.Answer{Outcome: approval.Accepted, Scope: policy.Always}, load(guide)+"\n"+`call read_skill_file {"skill":"mcp.docs/acme/guide","path":"a.md"}`, 1, "Second.")
	if !strings.Contains(questions[0], "changed since you approved it. Files: changed: a.md") {
		t.Errorf("asked %q", questions)
	}
	if k := w.open(assembly.Request{Principal: w.eve}); k.Publisher("docs") != nil {
		t.Error("a user outside of the group has the skills")
	}
}

// Nothing that a server shows to one account reaches a user with another account: neither
// the list, nor a file, even if the other entry has the file's digest.
func TestSkillsOfServersArePrivate(t *testing.T) {
	w := sqlite(t)
	s := serverskilltest.Start(t)
	const vault = "skill://vault/SKILL.md"
	s.Put("ada-token", vault, serverskilltest.Text("vault", "Ada's secret plan.\n"))
	s.Put("meg-token", "skill://common/SKILL.md", serverskilltest.Text("common", "For all.\n"))
	w.publish(s.URL, "skills: allow, headers: {Authorization: 'Bearer ${{user.docs_token}}'}")
	at := agents.Subject{Kind: agents.ServerKind, Namespace: string(w.team), Name: "Docs"}
	w.grant(w.ada, "docs_token", "ada-token", at)
	w.grant(w.meg, "docs_token", "meg-token", at)
	ada, meg := w.begin(w.ada, ""), w.begin(w.meg, "")
	w.ask(w.ada, ada, load("mcp.docs/vault"), "Ada's secret plan.")
	names := func(p assembly.Request) (out []string) {
		l, err := w.open(p).Publisher("docs").ListSkills(t.Context(), false)
		must(t, err)
		for _, one := range l.Skills {
			out = append(out, one.Name)
		}
		return out
	}
	if got := names(assembly.Request{Principal: w.ada}); !slices.Equal(got, []string{"mcp.docs/vault"}) {
		t.Errorf("ada sees %q", got)
	}
	if got := names(assembly.Request{Principal: w.meg}); !slices.Equal(got, []string{"mcp.docs/common"}) {
		t.Errorf("meg sees %q", got)
	}
	if got := w.ask(w.meg, meg, load("mcp.docs/vault")); strings.Contains(got, "secret plan") || !strings.Contains(got, "not found") {
		t.Errorf("meg loads %q", got)
	}
	// An entry with the digest of Ada's file, whose content meg's account does not get.
	s.Put("meg-token", vault, serverskilltest.Text("vault", "Ada's secret plan.\n"))
	s.Serve("meg-token", vault, "---\nname: vault\ndescription: Does vault.\n---\nGuess.\n")
	if got := w.ask(w.meg, meg, load("mcp.docs/skill://vault/SKILL.md")); strings.Contains(got, "secret plan") {
		t.Errorf("meg loads %q", got)
	}
	if reads := s.Requests("resources/read meg-token " + vault); len(reads) == 0 {
		t.Error("the file was not requested with meg's credential")
	}
}

// The skills of a server are listed in the background, and searched.
func TestSkillsOfServersAreListed(t *testing.T) {
	w := sqlite(t)
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "Text.\n"))
	w.publish(s.URL, "skills: allow")
	k := w.open(assembly.Request{Principal: w.ada})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if e := k.Runtime.Catalog().Snapshot().ByName("mcp.docs/acme/guide"); e != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("not listed")
		}
	}
	if reads := s.Requests("resources/read"); len(reads) > 0 {
		t.Errorf("fetched %q to list them", reads)
	}
	hits, err := k.Runtime.Catalog().Search(t.Context(), "guide", catalog.SearchOptions{})
	must(t, err)
	if len(hits) == 0 || hits[0].Name != "mcp.docs/acme/guide" {
		t.Errorf("found %v", hits)
	}
}
