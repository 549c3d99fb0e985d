package mcpapi

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

func TestGrantRequests(t *testing.T) {
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { out := now.Add(d); return &out }
	for _, tt := range []struct {
		request grantRequest
		faults  string
	}{
		{grantRequest{Scope: policy.Always}, ""},
		{grantRequest{Scope: policy.Always, Session: "s"}, "body.session"},
		{grantRequest{Scope: policy.ForSession, Session: "s"}, ""},
		{grantRequest{Scope: policy.ForSession}, "body.session"},
		{grantRequest{Scope: policy.Always, Expires: at(time.Nanosecond)}, ""},
		{grantRequest{Scope: policy.Always, Expires: at(0)}, "body.expires"},
		{grantRequest{Scope: policy.Always, Arguments: json.RawMessage(`{}`)}, ""},
		{grantRequest{Scope: policy.Always, Arguments: json.RawMessage(`[]`), Subject: "x"}, "body.arguments body.subject"},
		{grantRequest{Scope: policy.Always, Subject: "sha256:" + strings.Repeat("0", 64)}, ""},
	} {
		var faults []string
		if p, ok := errors.AsType[*api.Problem](tt.request.check(now)); ok {
			for _, f := range p.Errors {
				faults = append(faults, f.Where)
			}
		}
		if got := strings.Join(faults, " "); got != tt.faults {
			t.Errorf("%+v: %q, want %q", tt.request, got, tt.faults)
		}
	}
}

func TestGrantProblems(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{&tools.UnknownToolError{Name: "x"}, 404, "not_found"}, {&loadout.RefusedError{NeedsApproval: true}, 409, "changed"}, {&loadout.RefusedError{}, 403, "by_rule"},
		{&tools.FailedError{Err: other}, 502, "server"},
	} {
		if p, _ := errors.AsType[*api.Problem](grantProblem(tt.err)); p == nil || p.Status != tt.status || p.Code != tt.code || p.Next == "" {
			t.Errorf("%T: %+v", tt.err, p)
		}
	}
	if err := grantProblem(other); err != other {
		t.Error(err)
	}
}

func TestHowToApprove(t *testing.T) {
	at := agentRef{"Ghost", "default", "writer"}
	const body = `{"tool":"t","kind":"Ghost","namespace":"default","name":"writer","scope":"always"`
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("other"), ""},
		{&tools.NotReadOnlyError{Tool: tools.Tool{Name: "t"}, Approvable: true}, "look at the tool's definition, and send POST /api/v1/grants with " + body + `,"read_only":true}`},
		{&tools.NotReadOnlyError{Tool: tools.Tool{Name: "t"}}, ""},
		{&loadout.RefusedError{Skill: "pdf"}, "ask an owner or maintainer of skill pdf to review this version (GET /api/v1/reviews)"},
		{&loadout.RefusedError{Call: &loadout.CallRequest{Tool: "t"}, NeedsApproval: true}, "allow it on the page of the hub, or with POST /api/v1/grants with " + body + "}"},
		{&loadout.RefusedError{Call: &loadout.CallRequest{Tool: "t"}}, ""},
	} {
		if got := at.howToApprove(tt.err); got != tt.want {
			t.Errorf("%T: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestAgentOfAnEndpoint(t *testing.T) {
	for _, tt := range []struct {
		agent Agent
		want  string
	}{
		{Agent{}, "mcp"}, {Agent{Kind: "Ghost", Name: "a"}, "Ghost//a"}, {Agent{"Ghost", "crew", "a"}, "Ghost/crew/a"}, {Agent{Kind: "Ghost"}, ""}, {Agent{Name: "a"}, ""}, {Agent{Namespace: "crew"}, ""},
	} {
		at, err := tt.agent.position()
		if (err == nil) != (tt.want != "") || err == nil && at.String() != tt.want {
			t.Errorf("%+v: %s, %v", tt.agent, at, err)
		}
	}
}

func TestTruncate(t *testing.T) {
	for n, want := range map[int]int{99: 99, 100: 100, 101: 100} {
		if got := truncate(strings.Repeat("é", n)); len([]rune(got)) != want {
			t.Errorf("%d characters: %d", n, len([]rune(got)))
		}
	}
}

func TestState(t *testing.T) {
	base := state{principal: "ada", kinds: 1, settings: 2, secrets: "s", signIns: "i", secretsRevision: 3}
	other := base
	if other.secretsRevision++; !base.equal(other) {
		t.Error("a new revision of secrets with the same secrets needs a new endpoint")
	}
	for i, change := range []func(*state){func(s *state) { s.principal = "" }, func(s *state) { s.kinds++ }, func(s *state) { s.settings++ }, func(s *state) { s.secrets = "" }, func(s *state) { s.signIns = "" }} {
		other := base
		if change(&other); base.equal(other) {
			t.Errorf("change %d needs no new endpoint", i)
		}
	}
	p := account.Principal{Name: "ada", Groups: map[account.GroupID]account.Role{"b": account.Owner, "a": account.Reporter}}
	text := describePrincipal(p)
	for i, change := range []func(){func() { p.Name = "bob" }, func() { p.Admin = true }, func() { p.Groups["a"] = account.Owner }, func() { delete(p.Groups, "b") }} {
		if change(); describePrincipal(p) == text {
			t.Errorf("change %d of the rights is not seen", i)
		}
		text = describePrincipal(p)
	}
}

// The platform values of others affect only endpoints of agents, which may have values
// of their own.
func TestStateWithPlatformValues(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	s := newEndpoints(&Handlers{Options: Options{DB: db, Agents: agents.New(db, &agents.Options{}), SignIns: serverauth.New(serverauth.Options{DB: db})}})
	read := func(at agentRef) state {
		out, err := s.readState(t.Context(), account.Principal{User: "ada"}, at, state{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	agent := agentRef{"Ghost", "default", "g"}
	for _, tt := range []struct {
		owner              string
		changes, ofAnAgent bool
	}{{"user:ada", true, true}, {"user:bob", false, true}, {"server:g", false, true}, {"session:s", false, false}} {
		before, beforeAgent := read(agentRef{}), read(agent)
		if err := db.Secrets.Put(t.Context(), store.Secret{Owner: tt.owner, Name: "variable.x", Encrypted: []byte{1}}); err != nil {
			t.Fatal(err)
		}
		if changed, ofAnAgent := !before.equal(read(agentRef{})), !beforeAgent.equal(read(agent)); changed != tt.changes || ofAnAgent != tt.ofAnAgent {
			t.Errorf("a value of %s changes the state: %t, of an agent: %t", tt.owner, changed, ofAnAgent)
		}
	}
}

func TestFailedResults(t *testing.T) {
	res := failedResult(t.Context(), "disabled", "Ask somebody.")
	if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || text != "Not done: disabled. Ask somebody." {
		t.Errorf("%v %q", res.IsError, text)
	}
}

func TestListeners(t *testing.T) {
	r := httptest.NewRequest("POST", "/mcp", nil)
	if isListener(r) {
		t.Error("a call is a listener")
	}
	r.Header.Set("Mcp-Method", "subscriptions/listen")
	if !isListener(r) {
		t.Error("a subscription is no listener")
	}
}
