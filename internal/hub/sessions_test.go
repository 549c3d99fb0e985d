package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/llm"
)

// shelf are the skills of conversations here.
var shelf = fstest.MapFS{
	"tides/SKILL.md":   {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	"ships/SKILL.md":   {Data: []byte("---\nname: ships\ndescription: Knows ships.\n---\nShips are long.\n")},
	"harbour/SKILL.md": {Data: []byte("---\nname: harbour\ndisplayName: The harbour\ndescription: Knows the harbour.\ndependencies: [tides]\n---\nAsk the master.\n")},
}

// echo is a model that repeats the last message. For "call NAME ARGUMENTS" it calls a
// tool and returns its result. It never answers "wait".
type echo struct{}

func (echo) Name() string { return "echo:1" }

func (m echo) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a := m.answer(r)
		if a == nil {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		for word := range strings.SplitAfterSeq(a.Message.Text(), " ") {
			if word != "" && !yield(llm.TextDelta(word), nil) {
				return
			}
		}
		yield(llm.Done{Answer: *a}, nil)
	}
}

func (echo) answer(r *llm.Request) *llm.Answer {
	var last llm.Message
	for _, m := range r.Messages {
		if m.Role != llm.Notice {
			last = m
		}
	}
	for _, p := range last.Parts {
		if res, ok := p.(llm.Result); ok {
			return said(llm.StopEnd, llm.Text("result: "+(&llm.Message{Parts: res.Parts}).Text()))
		}
	}
	text := last.Text()
	if text == "wait" {
		return nil
	}
	if rest, ok := strings.CutPrefix(text, "call "); ok {
		name, args, _ := strings.Cut(rest, " ")
		if args == "" {
			args = "{}"
		}
		return said(llm.StopTools, llm.Call{ID: "1", Name: name, Arguments: args})
	}
	return said(llm.StopEnd, llm.Text("you said: "+text))
}

func said(stop llm.Stop, part llm.Part) *llm.Answer {
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{part}}, Stop: stop, Usage: llm.Usage{Input: 10, Output: 2}}
}

// talker sets up conversations with echo, the shelf, and two tools: burn, which needs
// approval, and render, which a client performs.
func talker(t testing.TB, n *node, change ...func(*chat.Options, *chat.Setup)) {
	t.Helper()
	err := n.ChangeChat(func(o *chat.Options) {
		o.Dir = t.TempDir()
		set := func(s *chat.Setup) {
			for _, f := range change {
				f(o, s)
			}
		}
		set(&chat.Setup{})
		o.Setup = func(ctx context.Context, _ chat.Request) (*chat.Setup, error) {
			rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, shelf)}})
			if err != nil {
				return nil, err
			}
			s := &chat.Setup{Runtime: rt, Model: echo{}, Close: rt.Close, Tools: func(_ context.Context, talk *chat.ToolContext) ([]agent.Tool, error) {
				client := &clientaction.Client{Approvals: talk.Approvals, Session: talk.ID, Principal: talk.User}
				return []agent.Tool{burn(talk), client.Tool("mermaid", llm.Tool{Name: "render", InputSchema: json.RawMessage(`{"type":"object"}`)})}, nil
			}}
			set(s)
			return s, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// burn is a tool that always needs approval.
func burn(talk *chat.ToolContext) agent.Tool {
	approve := approver.New(talk.Approvals, talk.ID, talk.User)
	return agent.Tool{ReportsStart: true, Tool: llm.Tool{Name: "burn", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Call: func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
			about := &loadout.CallRequest{Tool: "burn", Skill: "shelf", Owner: "the skill shelf", Reason: "it destroys", SameArguments: true, Arguments: args}
			yes, err := approve(ctx, &loadout.ApprovalRequest{Reason: about.Reason, Call: about})
			if err != nil {
				return nil, err
			}
			if !yes.Approved {
				return &agent.Outcome{Text: "not burned: " + yes.Feedback, Error: true, Denied: true}, nil
			}
			if err := agent.ReportStart(ctx); err != nil {
				return nil, err
			}
			if yes.Arguments == nil {
				yes.Arguments = args
			}
			return &agent.Outcome{Text: "burned " + string(yes.Arguments)}, nil
		}}
}

// hall is a hub with two users and their conversations.
func hall(t testing.TB, change ...func(*chat.Options, *chat.Setup)) (n *node, ada, bob caller) {
	t.Helper()
	n = team(t)
	talker(t, n, change...)
	root := n.signIn(t, "root", secret)
	_, ada = n.newUser(t, root, "ada")
	_, bob = n.newUser(t, root, "bob")
	return n, ada, bob
}

// begin begins a conversation, and returns the path of it.
func (c caller) begin(t testing.TB) string {
	t.Helper()
	return "/api/v1/sessions/" + c.send(t, "POST", "/api/v1/sessions", map[string]string{}).want(t, 201).text(t, "id")
}

// say says something, and returns its number.
func (c caller) say(t testing.TB, session, text string) int64 {
	t.Helper()
	var out struct{ Input int64 }
	c.send(t, "POST", session+"/messages", map[string]string{"text": text}).want(t, 202).into(t, &out)
	return out.Input
}

// talk sends a message and waits for the end of the turn.
func (c caller) talk(t testing.TB, session, text string) chat.Event {
	t.Helper()
	return c.ended(t, session, c.say(t, session, text))
}

// lines returns the messages in short form.
func (c caller) lines(t testing.TB, session string) []string {
	t.Helper()
	var page struct{ Items []chat.Line }
	c.send(t, "GET", session+"/messages", nil).want(t, 200).into(t, &page)
	var out []string
	for _, l := range page.Items {
		out = append(out, fmt.Sprintf("%s: %s", l.Role, l.Text))
	}
	return out
}

func TestSessions(t *testing.T) {
	_, ada, bob := hall(t)
	var began struct {
		ID, Owner, Title string
		Busy             bool
		Input            int64
	}
	ada.send(t, "POST", "/api/v1/sessions", map[string]string{"title": " Of\nships ", "message": "hello"}).want(t, 201).into(t, &began)
	session := "/api/v1/sessions/" + began.ID
	if began.Title != "Of ships" || began.Input == 0 {
		t.Errorf("it began as %+v", began)
	}
	if ev := ada.ended(t, session, began.Input); ev.Reason != chat.Done {
		t.Errorf("the turn ended as %+v", ev)
	}
	if got, want := ada.lines(t, session), []string{"user: hello", "assistant: you said: hello"}; !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
	ada.talk(t, session, "again")
	var page struct {
		Items []chat.Line
		Next  string
		Told  int64
	}
	ada.send(t, "GET", session+"/messages?limit=3", nil).want(t, 200).into(t, &page)
	if len(page.Items) != 3 || page.Next == "" || page.Told == 0 {
		t.Errorf("the first page is %+v", page)
	}
	rest := page
	ada.send(t, "GET", session+"/messages?after="+page.Next, nil).want(t, 200).into(t, &rest)
	if len(rest.Items) != 1 || rest.Items[0].Text != "you said: again" {
		t.Errorf("the second page is %+v", rest)
	}
	ada.send(t, "PATCH", session, map[string]string{"title": "Ships"}).want(t, 200)
	if title := ada.send(t, "GET", session, nil).want(t, 200).text(t, "title"); title != "Ships" {
		t.Errorf("it is called %q", title)
	}
	var usage struct{ Models map[string]llm.Usage }
	ada.send(t, "GET", session+"/usage", nil).want(t, 200).into(t, &usage)
	if want := (llm.Usage{Input: 20, Output: 4}); usage.Models["echo:1"] != want {
		t.Errorf("it took %+v", usage)
	}
	second := ada.begin(t)
	var list struct{ Items []struct{ ID string } }
	ada.send(t, "GET", "/api/v1/sessions", nil).want(t, 200).into(t, &list)
	if len(list.Items) != 2 || !strings.HasSuffix(second, list.Items[0].ID) || list.Items[1].ID != began.ID {
		t.Errorf("the list is %+v", list)
	}
	bob.send(t, "GET", "/api/v1/sessions?owner="+began.Owner, nil).wantProblem(t, 404, "not_found")
	bob.send(t, "GET", session, nil).wantProblem(t, 404, "not_found")
	ada.send(t, "DELETE", session, nil).want(t, 204)
	ada.send(t, "GET", session+"/messages", nil).wantProblem(t, 404, "not_found")
}

func TestSessionProblems(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	for _, tt := range []struct {
		name, method, path string
		body               any
		status             int
		code               string
	}{
		{"nothing said", "POST", session + "/messages", map[string]string{}, 422, "invalid"},
		{"more than can be said", "POST", session + "/messages", map[string]string{"text": strings.Repeat("é", chat.MaxText/2+1)}, 422, "invalid"},
		{"begun with that", "POST", "/api/v1/sessions", map[string]string{"message": strings.Repeat("é", chat.MaxText/2+1)}, 422, "invalid"},
		{"a page that there is not", "GET", session + "/messages?after=x", nil, 422, "invalid"},
		{"an agent that is none", "POST", "/api/v1/sessions", map[string]string{"agent": "helper"}, 422, "invalid"},
		{"one of another kind", "POST", "/api/v1/sessions", map[string]any{"agent": map[string]string{"kind": "Model", "name": "x"}}, 422, "invalid"},
		{"one that is not there", "POST", "/api/v1/sessions", map[string]string{"agent": "Bot/default/helper"}, 422, "no_agent"},
		{"likewise, in parts", "POST", "/api/v1/sessions", map[string]any{"agent": map[string]string{"kind": "Bot", "name": "helper"}}, 422, "no_agent"},
		{"kept in a way that there is not", "POST", session + "/skills", map[string]string{"name": "tides", "keep": "long"}, 422, "invalid"},
		{"a format that there is not", "GET", session + "/export?format=pdf", nil, 422, "invalid"},
		{"a file that there is not", "GET", session + "/files/x", nil, 404, "not_found"},
		{"a file outside", "PUT", session + "/files/a%5C..%5Cb", "x", 422, "invalid"},
		{"a file that is too large", "PUT", session + "/files/x", strings.Repeat("x", chat.MaxFile+1), 413, "too_large"},
		{"no event", "GET", session + "/events?after=x", nil, 422, "invalid"},
		{"no question", "POST", "/api/v1/asks/x", map[string]string{"outcome": "accepted"}, 404, "not_found"},
		{"an answer that is none", "POST", "/api/v1/asks/x", map[string]string{"outcome": "expired"}, 422, "invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ada.send(t, tt.method, tt.path, tt.body).wantProblem(t, tt.status, tt.code)
		})
	}
	r := ada.send(t, "POST", "/api/v1/sessions", map[string]string{"agent": "Bot/default/helper"})
	if method, path, _ := strings.Cut(strings.TrimPrefix(r.text(t, "next"), "list them: "), " "); method != "GET" || ada.send(t, method, path, nil).status != 200 {
		t.Errorf("the next step is none: %s", r.body)
	}
	var list struct{ Items []any }
	if ada.send(t, "GET", "/api/v1/sessions", nil).into(t, &list); len(list.Items) != 1 {
		t.Errorf("%d conversations are left", len(list.Items))
	}
}

func TestTooManyPendingMessages(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	first := ada.say(t, session, "wait")
	ada.until(t, session+"/events", func(ev chat.Event) bool { return ev.Type == chat.TurnStarted })
	for range chat.MaxQueued {
		ada.say(t, session, "hello")
	}
	r := ada.send(t, "POST", session+"/messages", map[string]string{"text": "one more"})
	if r.wantProblem(t, 429, "waiting"); r.header.Get("Retry-After") == "" {
		t.Error("it is missing when to try again")
	}
	ada.send(t, "POST", session+"/cancel", nil).want(t, 204)
	if ev := ada.ended(t, session, first); ev.Reason != chat.Cancelled {
		t.Errorf("it ended as %+v", ev)
	}
	if ev := ada.talk(t, session, "hello"); ev.Reason != chat.Done {
		t.Errorf("the next ended as %+v", ev)
	}
}

// W13: the last answer of a turn has the names of the skills that were loaded for it.
func TestW13LoadedSkillsInHistory(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	ada.talk(t, session, `call load_skill {"name":"tides"}`)
	ada.talk(t, session, "hello")
	var page struct {
		Items []struct {
			Role         string   `json:"role"`
			LoadedSkills []string `json:"loaded_skills"`
		}
	}
	ada.send(t, "GET", session+"/messages", nil).want(t, 200).into(t, &page)
	var got []string
	for _, l := range page.Items {
		got = append(got, fmt.Sprint(l.Role, l.LoadedSkills, l.LoadedSkills == nil))
	}
	want := []string{"user[] true", "assistant[] false", "assistant[tides] false", "user[] true", "assistant[] false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// W14: a preloaded skill and one that the user named are active from the first response
// on, and are not recorded as loaded.
func TestW14PreloadedAndNamedSkills(t *testing.T) {
	_, ada, _ := hall(t, func(_ *chat.Options, s *chat.Setup) { s.Preload = []string{"ships"} })
	session := ada.begin(t)
	var body struct{ Input int64 }
	ada.send(t, "POST", session+"/messages", map[string]string{"text": "now", "skill": "tides"}).want(t, 202).into(t, &body)
	ada.ended(t, session, body.Input)
	if got := ada.inForce(t, session); !slices.Equal(got, []string{"ships for good", "tides 5"}) {
		t.Errorf("active skills: %q", got)
	}
	if r := ada.send(t, "GET", session+"/messages", nil).want(t, 200); !strings.Contains(r.body, `"loaded_skills":[]`) || strings.Contains(r.body, `"loaded_skills":["`) {
		t.Errorf("the history is %s", r.body)
	}
}

// inForce returns the active skills with their remaining turns.
func (c caller) inForce(t testing.TB, session string) []string {
	t.Helper()
	var list struct{ Items []chat.ActiveSkill }
	c.send(t, "GET", session+"/skills", nil).want(t, 200).into(t, &list)
	out := []string{}
	for _, f := range list.Items {
		left := "for good"
		if f.TurnsLeft != nil {
			left = fmt.Sprint(*f.TurnsLeft)
		}
		out = append(out, f.Skill.Name+" "+left)
	}
	return out
}

func TestManualSkills(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	var loaded chat.Loaded
	ada.send(t, "POST", session+"/skills", map[string]string{"name": "harbour", "keep": "pinned"}).want(t, 200).into(t, &loaded)
	if loaded.State != "loaded" || !slices.Equal(loaded.Dependencies, []string{"tides"}) {
		t.Errorf("the load came to %+v", loaded)
	}
	ada.send(t, "POST", session+"/skills", map[string]string{"name": "ships"}).want(t, 200)
	if got := ada.inForce(t, session); !slices.Equal(got, []string{"tides for good", "harbour for good", "ships 5"}) {
		t.Errorf("active skills: %q", got)
	}
	if r := ada.send(t, "POST", session+"/skills", map[string]string{"name": "nothing"}).want(t, 200); !strings.Contains(r.body, `"state":"failed","problems":["skill \"nothing\" not found`) {
		t.Errorf("a load of what is missing came to %s", r.body)
	}
	ada.send(t, "DELETE", session+"/skills/tides", nil).wantProblem(t, 409, "failed") // harbour needs it
	var gone struct{ Unloaded []string }
	ada.send(t, "DELETE", session+"/skills/tides?cascade=true", nil).want(t, 200).into(t, &gone)
	if slices.Sort(gone.Unloaded); !slices.Equal(gone.Unloaded, []string{"harbour", "tides"}) {
		t.Errorf("unloaded are %q", gone.Unloaded)
	}
	if got := ada.inForce(t, session); !slices.Equal(got, []string{"ships 5"}) {
		t.Errorf("active skills: %q", got)
	}
}

func TestSessionFiles(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	for path, data := range map[string]string{"notes/tide%20table%C3%A9.txt": "high\x00\xff", "empty": ""} {
		ada.with("Content-Type", "application/octet-stream").send(t, "PUT", session+"/files/"+path, data).want(t, 204)
		r := ada.send(t, "GET", session+"/files/"+path, nil).want(t, 200)
		if r.body != data || r.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment; filename") {
			t.Errorf("%s: it is %q with %v", path, r.body, r.header)
		}
		ada.with("If-None-Match", r.header.Get("Etag")).send(t, "GET", session+"/files/"+path, nil).want(t, 304)
	}
	var list struct{ Items []chat.File }
	ada.send(t, "GET", session+"/files", nil).want(t, 200).into(t, &list)
	if len(list.Items) != 2 || list.Items[0].Path != "empty" || list.Items[1].Path != "notes/tide tableé.txt" || list.Items[1].Size != 6 {
		t.Errorf("the files are %+v", list)
	}
	ada.send(t, "DELETE", session+"/files/empty", nil).want(t, 204)
	ada.send(t, "DELETE", session+"/files/empty", nil).wantProblem(t, 404, "not_found")
}

func TestExport(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	ada.send(t, "PATCH", session, map[string]string{"title": `Tides/"2" ü`}).want(t, 200)
	ada.talk(t, session, "hello")
	for format, want := range map[string]struct{ kind, name, text string }{
		"":              {"text/markdown; charset=utf-8", "filename*=utf-8''Tides--2-%20%C3%BC.md", "you said: hello"},
		"?format=jsonl": {"application/jsonl", ".jsonl", `"text":"you said: hello"`},
	} {
		r := ada.send(t, "GET", session+"/export"+format, nil).want(t, 200)
		if r.header.Get("Content-Type") != want.kind || !strings.Contains(r.header.Get("Content-Disposition"), want.name) || !strings.Contains(r.body, want.text) {
			t.Errorf("%q: %v, %s", format, r.header, r.body)
		}
		if head := ada.send(t, http.MethodHead, session+"/export"+format, nil).want(t, 200); head.header.Get("Content-Type") != want.kind {
			t.Errorf("%q: the headers alone are %v", format, head.header)
		}
	}
}

// A compaction waits for its turn as a message does.
func TestCompact(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	ada.talk(t, session, "hello")
	var out struct{ Input int64 }
	ada.send(t, "POST", session+"/compact", nil).want(t, 202).into(t, &out)
	if ev := ada.ended(t, session, out.Input); ev.Reason != chat.Done {
		t.Errorf("it ended as %+v", ev)
	}
}

// A conversation is with an agent that one may use, however its name is written.
func TestSessionAgent(t *testing.T) {
	n, ada, bob := hall(t)
	apply := func(c caller, document string) {
		t.Helper()
		who := c.send(t, "GET", c.begin(t), nil).want(t, 200).text(t, "owner")
		result, err := n.Kinds().Apply(t.Context(), account.Principal{User: account.UserID(who), Scopes: account.AllScopes}, agents.Parse([]byte(document), "x.yaml"), false)
		if err != nil || len(result.Changes) != 1 || result.Changes[0].Outcome != "created" {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	apply(ada, "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: helper}\nspec: {systemPrompt: Help.}\n")
	for _, agent := range []any{"Ghost/default/helper", "Ghost/helper", map[string]string{"kind": "Ghost", "name": "helper"}, map[string]string{"kind": "Ghost", "namespace": "default", "name": "helper"}} {
		r := ada.send(t, "POST", "/api/v1/sessions", map[string]any{"agent": agent}).want(t, 201)
		if got := r.text(t, "agent"); got != "Ghost/default/helper" {
			t.Errorf("%v is stored as %q", agent, got)
		}
		bob.send(t, "POST", "/api/v1/sessions", map[string]any{"agent": agent}).wantProblem(t, 422, "no_agent")
	}
}

// The error for an invalid agent reference lists the valid forms.
func TestAgentReferenceForms(t *testing.T) {
	_, ada, _ := hall(t)
	for _, agent := range []any{"nobody", "Model/default/m", "Bot//b", "a/b/c/d", 7, map[string]string{"kind": "Ghost"}, map[string]string{"kind": "Ghost", "name": "g", "colour": "red"}} {
		r := ada.send(t, "POST", "/api/v1/sessions", map[string]any{"agent": agent})
		r.wantProblem(t, 422, "invalid")
		if !strings.Contains(r.body, `"where":"body.agent"`) || !strings.Contains(r.body, "Bot/NAMESPACE/NAME") {
			t.Errorf("%v: %s", agent, r.body)
		}
	}
}

// A created item is at its Location.
func TestCreatedHasLocation(t *testing.T) {
	n, _, _ := hall(t)
	root := n.signIn(t, "root", secret)
	for list, body := range map[string]map[string]string{"sessions": {"title": "Tides"}, "users": {"name": "eve"}, "groups": {"name": "web"}} {
		r := root.send(t, "POST", "/api/v1/"+list, body).want(t, 201)
		at := r.header.Get("Location")
		if got := root.send(t, "GET", at, nil).want(t, 200).text(t, "id"); got != r.text(t, "id") || at != "/api/v1/"+list+"/"+got {
			t.Errorf("%s: %q has %q", list, at, got)
		}
	}
}

func TestSessionsInSingleMode(t *testing.T) {
	n := start(t, hub.Options{})
	me := n.anybody()
	for _, path := range []string{"me", "users", "users/me"} {
		if r := me.send(t, "GET", "/api/v1/"+path, nil).want(t, 200); !strings.Contains(r.body, `"admin":true`) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	session := me.begin(t)
	if ev := me.talk(t, session, "hello"); ev.Reason != chat.Done {
		t.Errorf("it ended as %+v", ev)
	}
	if got := me.lines(t, session); len(got) < 2 || got[0] != "user: hello" || !strings.Contains(got[len(got)-1], "built-in demo") {
		t.Errorf("it has %q", got)
	}
}

// W17: active and manually loaded skills have their display name, or their name.
func TestW17DisplayNamesOverHTTP(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	var loaded chat.Loaded
	ada.send(t, "POST", session+"/skills", map[string]string{"name": "harbour"}).want(t, 200).into(t, &loaded)
	var list struct{ Items []chat.ActiveSkill }
	ada.send(t, "GET", session+"/skills", nil).want(t, 200).into(t, &list)
	got := []string{loaded.Title}
	for _, f := range list.Items {
		got = append(got, f.Title)
	}
	if !slices.Equal(got, []string{"The harbour", "tides", "The harbour"}) {
		t.Errorf("they are called %q", got)
	}
}

func TestPinOverHTTP(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	ada.talk(t, session, `call load_skill {"name": "tides"}`)
	keep := func(body map[string]string, want string) {
		t.Helper()
		ada.send(t, "POST", session+"/skills", body).want(t, 200)
		if got := ada.inForce(t, session); !slices.Equal(got, []string{want}) {
			t.Errorf("after %v active skills: %q, want %q", body, got, want)
		}
	}
	keep(map[string]string{"name": "tides", "keep": "pinned"}, "tides for good")
	keep(map[string]string{"name": "tides"}, "tides for good")
	keep(map[string]string{"name": "tides", "keep": ""}, "tides 5")
	keep(map[string]string{"name": "tides", "keep": "once"}, "tides 1")
	r := ada.send(t, "GET", session+"/skills", nil).want(t, 200)
	for _, part := range []string{`"by":"model"`, `"why":"the model loaded it`, `"call":"1"`, `"origin":"mine"`, `"since":"`, `"digest":"sha256:`, `"keep":"once"`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("%s is not in %s", part, r.body)
		}
	}
}
