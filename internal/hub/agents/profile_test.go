package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

func serverNames(servers []agents.Server) (names []string) {
	for _, s := range servers {
		names = append(names, s.Name+" "+s.Target())
	}
	return names
}

// Wegent's example, from its document to a request with the token that the acting user
// granted to this server.
func TestWegentExample(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		h := newHub(t, db, nil)
		ada := h.people["reporter"]
		wantEqual(t, said(h.apply("reporter", weibo)), "created Ghost/weibo-test; 4:9 skill-missing\n")
		uploaded := h.upload(h.of("reporter"), "weibo", digestA)
		p := h.profile("reporter", agents.GhostKind, "", "weibo-test")
		wantEqual(t, p.SystemPrompt, "You are a Weibo analyst")
		wantEqual(t, p.Skills, []agents.SkillChoice{{Name: "weibo", ID: uploaded.ID, In: h.of("reporter")}})
		wantEqual(t, p.Filter.Select, []string{"weibo"})
		wantEqual(t, serverNames(p.Servers), []string{"weiboServer weibo-api.example.com"})
		wantEqual(t, len(p.Problems), 0)

		server := p.Servers[0]
		resolve := func() (*upstream.Config, []upstream.UnsetVariable) {
			t.Helper()
			v, err := h.Secrets().ServerVariables(ctx, ada, server, "")
			must(t, err)
			return server.Resolve(v)
		}
		if c, unset := resolve(); c != nil || len(unset) != 1 || unset[0].Name != "weibo_token" {
			t.Errorf("without a token: %v %v", c, unset)
		}
		own := agents.NamespaceOwner(h.of("reporter"))
		must(t, h.Secrets().Set(ctx, ada, own, "weibo_token", "t0ken-of-ada"))
		if c, _ := resolve(); c != nil {
			t.Error("a token that was not granted is used")
		}
		of := agents.Subject{Kind: agents.GhostKind, Name: "weibo-test", Server: "weiboServer"}
		must(t, h.Secrets().Grant(ctx, ada, own, "weibo_token", of, server.PolicyDigest(), ""))
		c, unset := resolve()
		if c == nil || c.Headers["Authorization"] != "Bearer t0ken-of-ada" {
			t.Fatalf("%v %v", c, unset)
		}

		// A server with another address is another server without grants.
		h.apply("reporter", strings.Replace(weibo, "weibo-api", "evil", 1))
		server = h.profile("reporter", agents.GhostKind, "", "weibo-test").Servers[0]
		if c, _ := resolve(); c != nil {
			t.Errorf("the token goes to %s", c.Target())
		}
	})
}

// W23: a Bot's server overrides a Ghost's server of the same name, which overrides a
// global one. A skill's servers are prefixed with its name and override none.
func TestW23Precedence(t *testing.T) {
	server := func(name, host string) agents.Server {
		return agents.Server{Config: &upstream.Config{Name: name, URLs: []string{"https://" + host + ".example.com"}}}
	}
	off := server("off", "ghost")
	off.Disabled = true
	l := agents.ServerLayers{
		Global: []agents.Server{server("a", "global"), server("b", "global"), server("c", "global"), server("c", "further"), server("off", "global")},
		Ghost:  []agents.Server{server("a", "ghost"), server("b", "ghost"), off},
		Bot:    []agents.Server{server("a", "bot"), server("s_taken", "bot")},
		Skills: []agents.SkillServers{
			{Skill: "s", Defined: []agents.Server{server("a", "skill"), server("taken", "skill")}, Names: []string{"b", "none"}},
			{Skill: "s_a", Defined: []agents.Server{server("", "other")}},
			{Skill: "s", Defined: []agents.Server{server("a", "again")}},
		},
	}
	servers, problems := agents.ResolveServers(l)
	wantEqual(t, serverNames(servers), []string{"a bot.example.com", "b ghost.example.com", "c global.example.com", "s_a skill.example.com", "s_a_ other.example.com", "s_taken bot.example.com"})
	wantEqual(t, problems, []string{
		"skill s: MCP server none not found",
		"skill s: MCP server s_taken omitted: the name exists already",
		"skill s: MCP server s_a omitted: the name exists already",
	})
	wantEqual(t, l.Skills[0].Defined[0].Name, "a") // the input is not changed
}

// A Ghost has its own servers and those around it, the nearest of each name. If it names
// servers, it has only these.
func TestProfileServers(t *testing.T) {
	h := newHub(t, sqlite(t), &agents.Options{Servers: []*upstream.Config{{Name: "mail", URLs: []string{"https://operator.example.com"}}, {Name: "file", Command: "file"}}})
	mcp := func(who, where, name string) {
		h.apply(who, "kind: MCPServer\nmetadata: {name: "+name+", namespace: "+where+"}\nspec: {url: 'https://"+who+".example.com'}\n")
	}
	mcp("admin", "public", "mail")
	mcp("admin", "public", "maps")
	mcp("maintainer", "team", "maps")
	mcp("developer", "default", "maps")
	ghost := head("Ghost") + "spec: {mcpServers: {own: {url: 'https://own.example.com'}}}"
	h.apply("developer", ghost)
	h.apply("developer", in("team", ghost))
	names := func(who, where string) []string {
		return serverNames(h.profile(who, agents.GhostKind, where, "x").Servers)
	}
	wantEqual(t, names("developer", ""), []string{"file file", "mail admin.example.com", "maps developer.example.com", "own own.example.com"})
	wantEqual(t, names("developer", "team"), []string{"file file", "mail admin.example.com", "maps maintainer.example.com", "own own.example.com"})
	wantEqual(t, names("reporter", "team"), names("developer", "team"))
	h.apply("developer", head("Ghost")+"spec: {mcpServers: [maps, file]}")
	wantEqual(t, names("developer", ""), []string{"file file", "maps developer.example.com"})
	must(t, h.Delete(t.Context(), h.people["developer"], agents.GhostKind, "", "x", false))
	h.apply("developer", in("team", head("Ghost")+"spec: {mcpServers: [mail, maps]}"))
	h.apply("maintainer", in("team", "kind: MCPServer\nmetadata: {name: maps}\nspec: {url: 'https://elsewhere.example.com'}\n"))
	wantEqual(t, names("reporter", "team"), []string{"mail admin.example.com", "maps elsewhere.example.com"})
}

// A command that the operator did not configure runs in the sandbox, and only after
// another user has reviewed its digest.
func TestServersAreReviewed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		h := newHub(t, db, nil)
		ghost := in("team", head("Ghost")+"spec: {mcpServers: {s: {command: run, args: [it]}}}")
		h.apply("developer", ghost)
		of := agents.Subject{Kind: agents.GhostKind, Namespace: "team", Name: "x", Server: "s"}
		server := func() agents.Server {
			t.Helper()
			return h.profile("reporter", agents.GhostKind, "team", "x").Servers[0]
		}
		s := server()
		if s.Usable() || !s.NeedsSandbox() || s.Review != store.Pending || s.Owner == "" {
			t.Errorf("%+v", s)
		}
		wantEqual(t, h.profile("reporter", agents.GhostKind, "team", "x").Problems, []string{"MCP server s: not started: its command needs a review (state: pending)"})
		for _, who := range []string{"developer", "reporter"} {
			if _, ok := asDenied(h.ReviewServer(ctx, h.people[who], of, s.PolicyDigest(), store.Approved, "")); !ok {
				t.Errorf("the %s may review it", who)
			}
		}
		wantError(t, h.ReviewServer(ctx, h.people["maintainer"], of, policy.Digest(digestA), store.Approved, ""), store.ErrConflict)
		must(t, h.ReviewServer(ctx, h.people["maintainer"], of, s.PolicyDigest(), store.Approved, "looks well"))
		if s := server(); !s.Usable() || !s.NeedsSandbox() {
			t.Errorf("%+v", s)
		}
		h.apply("maintainer", strings.Replace(ghost, "it", "other", 1))
		if s := server(); s.Usable() {
			t.Error("another command is approved")
		}
		// The maintainer owns it now and cannot approve it, not even after another user
		// changes another part of it.
		h.apply("developer", strings.Replace(ghost, "it", "other", 1))
		h.apply("developer", strings.Replace(strings.Replace(ghost, "it", "other", 1), "spec: {", "spec: {systemPrompt: Be kind., ", 1))
		if _, ok := asDenied(h.ReviewServer(ctx, h.people["maintainer"], of, server().PolicyDigest(), store.Approved, "")); !ok {
			t.Error("who wrote it approves it")
		}
		must(t, h.ReviewServer(ctx, h.people["owner"], of, server().PolicyDigest(), store.Rejected, "no"))
		if s := server(); s.Usable() || s.Review != store.Rejected {
			t.Errorf("%+v", s)
		}
		h.apply("developer", ghost)
		if !server().Usable() {
			t.Error("what was approved is not any more")
		}
		must(t, h.Delete(ctx, h.people["owner"], agents.GhostKind, "team", "x", false))
		h.apply("developer", ghost)
		if server().Usable() {
			t.Error("another Ghost of that name has what was approved")
		}
	})
}

func TestBotAndTeamProfiles(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	h.upload(store.Public, "plans", "sha256:p")
	prose := h.upload(store.Public, "prose", "sha256:w")
	h.apply("maintainer", in("team", crew))
	h.apply("maintainer", in("team", "kind: Bot\nmetadata: {name: writer, description: writes texts}\nspec: {ghostRef: plan, skills: [prose, plans], preload: [plans]}\n"))
	p := h.profile("reporter", agents.TeamKind, "", "crew")
	wantEqual(t, p.Kind+" "+p.Namespace+"/"+p.Name+": "+p.SystemPrompt, "Team team/crew: You plan.")
	wantEqual(t, p.Members, []agents.TeamMember{{Name: "writer", Description: "writes texts"}})
	if p.HandOff == nil || p.HandOff.Name != agents.HandOffTool || !strings.Contains(p.HandOff.Description, "- writer: writes texts") {
		t.Fatalf("%+v", p.HandOff)
	}
	var schema struct {
		Properties struct{ Member struct{ Enum []string } }
	}
	must(t, json.Unmarshal(p.HandOff.InputSchema, &schema))
	wantEqual(t, schema.Properties.Member.Enum, []string{"writer"})

	w, err := h.MemberProfile(ctx, h.people["reporter"], p, "writer")
	must(t, err)
	wantEqual(t, w.SystemPrompt, "You plan.\n\nBe short.")
	wantEqual(t, w.Model == nil, true)
	wantEqual(t, w.Filter.Select, []string{"plans", "prose"})
	wantEqual(t, []any{w.Skills[0].Preload, w.Skills[1].Preload, w.Skills[1].ID}, []any{true, false, prose.ID})
	_, err = h.MemberProfile(ctx, h.people["reporter"], p, "lead2")
	wantError(t, err, store.ErrNotFound)
	_, err = h.MemberProfile(ctx, h.people["outsider"], p, "writer")
	wantError(t, err, store.ErrNotFound)

	// The key of the model is the group's, for this model at this address.
	team := agents.NamespaceOwner(h.team)
	_, err = h.Secrets().ModelKey(ctx, h.people["reporter"], p.Model)
	wantError(t, err, policy.ErrNotGranted)
	must(t, h.Secrets().Set(ctx, h.people["maintainer"], team, "LLM", "sk-of-the-team"))
	must(t, h.Secrets().Grant(ctx, h.people["maintainer"], team, "LLM", agents.Subject{Kind: agents.ModelKind, Namespace: "team", Name: "big"}, p.Model.Digest, ""))
	key, err := h.Secrets().ModelKey(ctx, h.people["reporter"], p.Model)
	must(t, err)
	wantEqual(t, key, "sk-of-the-team")
	h.apply("maintainer", in("team", "kind: Model\nmetadata: {name: big}\nspec: {vendor: openai, model: m-1, baseUrl: 'https://other.example.com', apiKey: '${{secrets.LLM}}'}\n"))
	_, err = h.Secrets().ModelKey(ctx, h.people["reporter"], h.profile("reporter", agents.BotKind, "team", "lead").Model)
	wantError(t, err, policy.ErrNotGranted)

	wantEqual(t, h.profile("reporter", agents.BotKind, "team", "lead").HandOff == nil, true)
	_, err = h.Profile(ctx, h.people["reporter"], agents.ModelKind, "team", "big")
	wantError(t, err, store.ErrInvalid)
	_, err = h.Profile(ctx, h.people["outsider"], agents.TeamKind, "", "crew")
	wantError(t, err, store.ErrNotFound)
}

func TestKillSwitchForPartsOfAProfile(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("developer", in("team", head("Ghost")))
	h.apply("reporter", "kind: Bot\nmetadata: {name: b}\nspec: {ghostRef: {name: x, namespace: team}}\n---\nkind: Team\nmetadata: {name: t}\nspec: {members: [b]}\n---\nkind: Ghost\nmetadata: {name: own}\n")
	set(t, h, "team", agents.SkillSettings{Disabled: true})
	for what, want := range map[string]bool{"Bot b": true, "Team t": true, "Ghost own": false} {
		kind, name, _ := strings.Cut(what, " ")
		p := h.profile("reporter", kind, "", name)
		wantEqual(t, p.Filter.Disabled, want)
		_, stop, err := h.WithKillSwitch(t.Context(), p.SettingsNamespaces...)
		if _, off := errors.AsType[*agents.DisabledError](err); off != want {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			stop()
		}
	}
}

// Rules of a Ghost come with its profile.
func TestProfileRules(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("reporter", head("Ghost")+"spec: {policy: {rules: ['deny mcp.*.delete']}, expose: direct}")
	p := h.profile("reporter", agents.GhostKind, "", "x")
	wantEqual(t, p.Expose, "direct")
	if list := p.Rules.List(); len(list) != 1 || list[0] != "deny mcp.*.delete" {
		t.Errorf("%v", list)
	}
}

// W30: a hidden skill cannot be assigned, but stays usable where it is assigned.
func TestW30Hidden(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	s := h.upload(store.Public, "pdf", digestA)
	ghost := head("Ghost") + "spec: {skills: [pdf], skill_refs: {pdf: {skill_id: " + s.ID + "}}}"
	h.apply("reporter", ghost)
	must(t, h.db.Skills.SetHidden(t.Context(), s.ID, true))
	wantEqual(t, h.apply("reporter", ghost).Changes[0].Outcome, agents.Unchanged)
	p := h.profile("reporter", agents.GhostKind, "", "x")
	if len(p.Problems) > 0 || p.Skills[0].ID != s.ID {
		t.Errorf("%+v", p)
	}
	wantEqual(t, said(h.try("outsider", ghost)), "refused Ghost/x; 3:18 skill-ref\n")
}

// A reference that does not resolve, and a version that the user must not get, remove the
// name from the profile. A name alone is resolved at use.
func TestWithheldSkills(t *testing.T) {
	const digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	h := newHub(t, sqlite(t), &agents.Options{WithheldReason: func(_ context.Context, p account.Principal, s store.Skill, digest string) (string, error) {
		if s.Name == "held" && p.Name == "reporter" {
			return "rejected " + digest, nil
		}
		return "", nil
	}})
	held, renamed := h.upload(h.team, "held", digestA), h.upload(h.team, "renamed", digestB)
	other := h.upload(h.team, "other", digestA)
	old := h.upload(h.team, "old", digestA)
	h.apply("developer", in("team", head("Ghost")+`spec:
  skills: [held, renamed, other, old, nowhere]
  preload_skills: [held]
  skill_refs:
    held: {skill_id: `+held.ID+`, content_hash: "`+digestA+`"}
    renamed: {skill_id: `+renamed.ID+`}
    other: {namespace: team}
    old: {content_hash: "`+digestA+`"}`))
	for _, s := range []store.Skill{renamed, other} {
		must(t, h.db.Skills.Delete(t.Context(), s.ID))
	}
	replaced, err := h.db.Versions.Add(t.Context(), store.Version{SkillID: old.ID, Digest: digestB}, nil, nil)
	must(t, err)
	must(t, h.db.Skills.SetCurrent(t.Context(), old.ID, replaced.Number))
	must(t, h.db.Versions.Delete(t.Context(), old.ID, 1))
	for _, name := range []string{"held", "renamed", "other", "old"} {
		h.upload(store.Public, name, digestA) // which must not take its place
	}
	p := h.profile("reporter", agents.GhostKind, "team", "x")
	wantEqual(t, p.Filter.Select, []string{"nowhere"})
	wantEqual(t, p.Skills, []agents.SkillChoice{{Name: "nowhere"}})
	var withheld []string
	for _, c := range p.Withheld {
		withheld = append(withheld, strings.Join([]string{c.Name, c.ID, c.Digest}, " "))
	}
	wantEqual(t, withheld, []string{"held " + held.ID + " " + digestA, "renamed  ", "other  ", "old " + old.ID + " " + digestA})
	wantEqual(t, p.Problems, []string{"skill held: rejected " + digestA, "skill renamed: not found or not permitted", "skill other: not found or not permitted",
		"skill old: it has no version with digest " + digestA, "skill nowhere: not found or not permitted"})
	if p := h.profile("developer", agents.GhostKind, "team", "x"); p.Skills[0].ID != held.ID || !p.Skills[0].Preload {
		t.Errorf("another user has %+v", p.Skills)
	}
}

// W6: a name is resolved in the user's namespace, then the group's, then the public one.
// For a group's Ghost, that group precedes others.
func TestW6Order(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("developer", in("team", head("Ghost")+"spec: {skills: [pdf]}"))
	skill := func() string {
		p := h.profile("reporter", agents.GhostKind, "team", "x")
		return p.Skills[0].ID
	}
	wantEqual(t, skill(), "")
	for _, n := range []store.Namespace{store.Public, h.team, h.of("reporter")} {
		wantEqual(t, h.upload(n, "pdf", digestA).ID, skill())
	}
}

// W21: servers are read however they are written.
func TestW21Servers(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	for name, servers := range map[string]string{
		"a map":          "mcpServers: {a: {type: streamable-http, url: 'https://a.example.com'}}",
		"snake case":     "mcp_servers: {a: {transport: http, url: 'https://a.example.com'}}",
		"nested twice":   "mcpServers: {mcpServers: {a: {type: sse, url: 'https://a.example.com'}}}",
		"a list of maps": "mcpServers: [{name: a, url: 'https://a.example.com'}]",
	} {
		h.apply("reporter", head("Ghost")+"spec: {"+servers+"}")
		if diff := cmp.Diff([]string{"a a.example.com"}, serverNames(h.profile("reporter", agents.GhostKind, "", "x").Servers)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// W22: a variable has its granted value, and an unknown one has none.
func TestW22Variables(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	h.apply("reporter", head("Ghost")+"spec: {mcpServers: {s: {url: 'https://s.example.com', headers: {A: '${{user.name}}/${{ secrets.S }}', B: '${HOME:-none}'}}}}")
	me, own := h.people["reporter"], agents.NamespaceOwner(h.of("reporter"))
	s := h.profile("reporter", agents.GhostKind, "", "x").Servers[0]
	of := agents.Subject{Kind: agents.GhostKind, Name: "x", Server: "s"}
	must(t, h.Secrets().Set(ctx, me, own, "S", "${{user.id}}"))
	must(t, h.Secrets().Grant(ctx, me, own, "S", of, s.PolicyDigest(), ""))
	v, err := h.Secrets().ServerVariables(ctx, me, s, "")
	must(t, err)
	if c, unset := s.Resolve(v); c != nil || len(unset) != 1 || unset[0].Name != "name" {
		t.Errorf("%v %v", c, unset)
	}
	must(t, h.Secrets().Grant(ctx, me, own, "name", of, s.PolicyDigest(), ""))
	v, err = h.Secrets().ServerVariables(ctx, me, s, "")
	must(t, err)
	c, unset := s.Resolve(v)
	if c == nil || c.Headers["A"] != "reporter/${{user.id}}" || c.Headers["B"] != "none" {
		t.Errorf("%+v %v", c, unset)
	}
}

func asDenied(err error) (*account.DeniedError, bool) {
	return errors.AsType[*account.DeniedError](err)
}
