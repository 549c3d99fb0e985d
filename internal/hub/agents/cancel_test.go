package agents_test

import (
	"context"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// Whichever step of a read fails, the read fails. It never returns a part of the
// answer as if it were all.
func TestReadsFailWithTheirSteps(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	p, ctx := h.people["maintainer"], t.Context()
	skill := h.upload(h.team, "plans", digestA)
	h.upload(h.team, "prose", digestA+"b")
	h.apply("maintainer", in("team", crew))
	h.apply("admin", "kind: MCPServer\nmetadata: {name: global, namespace: public}\nspec: {url: https://global.example.com/mcp}\n")
	must(t, h.Secrets().Set(ctx, p, agents.NamespaceOwner(h.team), "LLM", "s3cret"))
	model := agents.Subject{Kind: agents.ModelKind, Namespace: "team", Name: "big"}
	digest, err := h.SubjectDigest(ctx, p, model)
	must(t, err)
	must(t, h.Secrets().Grant(ctx, p, agents.NamespaceOwner(h.team), "LLM", model, digest, ""))
	must(t, h.SetSkillSettings(ctx, p, "team", agents.SkillSettings{Allow: []string{"plans"}}))
	lead := h.profile("maintainer", agents.BotKind, "team", "lead")
	weather := agents.Subject{Kind: agents.ServerKind, Namespace: "team", Name: "weather"}
	page := store.Page{}
	for name, op := range map[string]func(ctx context.Context) (any, error){
		"get": func(ctx context.Context) (any, error) { return h.Get(ctx, p, agents.GhostKind, "team", "plan") },
		"list": func(ctx context.Context) (any, error) {
			all, next, err := h.List(ctx, p, "", "team", page)
			return []any{all, next}, err
		},
		"referrers": func(ctx context.Context) (any, error) {
			all, others, err := h.Referrers(ctx, p, agents.GhostKind, "team", "plan")
			return []any{all, others}, err
		},
		"global servers": func(ctx context.Context) (any, error) {
			all, problems, err := h.GlobalServers(ctx, p)
			return []any{all, problems}, err
		},
		"review": func(ctx context.Context) (any, error) { return h.ReviewState(ctx, policy.Digest(digestA)) },
		"models": func(ctx context.Context) (any, error) {
			all, next, err := h.ListModels(ctx, p, page)
			return []any{all, next}, err
		},
		"servers": func(ctx context.Context) (any, error) {
			all, next, err := h.ListServers(ctx, p, page)
			return []any{all, next}, err
		},
		"namespace":      func(ctx context.Context) (any, error) { return h.ResolveNamespace(ctx, p, "team") },
		"namespace text": func(ctx context.Context) (any, error) { return h.FormatNamespace(ctx, p, h.team) },
		"ghost":          func(ctx context.Context) (any, error) { return h.Profile(ctx, p, agents.GhostKind, "team", "plan") },
		"bot":            func(ctx context.Context) (any, error) { return h.Profile(ctx, p, agents.BotKind, "team", "writer") },
		"team":           func(ctx context.Context) (any, error) { return h.Profile(ctx, p, agents.TeamKind, "team", "crew") },
		"member": func(ctx context.Context) (any, error) {
			return h.MemberProfile(ctx, p, h.profile("maintainer", agents.TeamKind, "team", "crew"), "writer")
		},
		"digest": func(ctx context.Context) (any, error) { return h.SubjectDigest(ctx, p, model) },
		"server to test": func(ctx context.Context) (any, error) {
			s, _, err := h.ServerForTest(ctx, p, weather)
			return s, err
		},
		"server to use": func(ctx context.Context) (any, error) {
			s, _, err := h.ServerForUse(ctx, p, weather)
			return s, err
		},
		"defined servers": func(ctx context.Context) (any, error) {
			return h.DefinedServers(ctx, p, agents.GhostKind, "team", "plan")
		},
		"settings":      func(ctx context.Context) (any, error) { return h.SkillSettings(ctx, p, "team") },
		"filter":        func(ctx context.Context) (any, error) { return h.Filter(ctx, h.team, store.Public) },
		"filters":       func(ctx context.Context) (any, error) { return h.FilterEach(ctx, h.team, store.Public) },
		"pending tools": func(ctx context.Context) (any, error) { return h.ListPendingTools(ctx, []string{"weather"}) },
		"tool changes":  func(ctx context.Context) (any, error) { return h.ListToolChanges(ctx, "weather") },
		"secrets":       func(ctx context.Context) (any, error) { return h.Secrets().List(ctx, p, agents.NamespaceOwner(h.team)) },
		"grants": func(ctx context.Context) (any, error) {
			return h.Secrets().Grants(ctx, p, agents.NamespaceOwner(h.team))
		},
		"model key": func(ctx context.Context) (any, error) { return h.Secrets().ModelKey(ctx, p, lead.Model) },
		"values": func(ctx context.Context) (any, error) {
			v, err := h.Secrets().GrantedValues(ctx, p, policy.Digest(digestA), agents.SkillOwner(skill.ID), h.team, "")
			if err != nil {
				return nil, err
			}
			text, ok := v.Secret("LLM")
			return []any{text, ok}, nil
		},
		"variables": func(ctx context.Context) (any, error) {
			_, err := h.Secrets().ServerVariables(ctx, p, h.profile("maintainer", agents.GhostKind, "team", "plan").Servers[0], "")
			return nil, err
		},
		"fingerprint": func(ctx context.Context) (any, error) { return h.Secrets().Fingerprint(ctx, p) },
		"dry run": func(ctx context.Context) (any, error) {
			return h.Apply(ctx, p, agents.Parse([]byte(in("team", crew)), "a.yaml"), true)
		},
		"dry deletion": func(ctx context.Context) (any, error) {
			return nil, h.Delete(ctx, p, agents.TeamKind, "team", "crew", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			limittest.CancelReadAtEach(t, op)
		})
	}
}

// Whichever step of a change fails, the change fails, and it succeeds afterwards.
func TestChangesFailWithTheirSteps(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	p, ctx := h.people["maintainer"], t.Context()
	team := agents.NamespaceOwner(h.team)
	model := agents.Subject{Kind: agents.ModelKind, Namespace: "team", Name: "big"}
	weather := agents.Subject{Kind: agents.ServerKind, Namespace: "team", Name: "weather"}
	exists := func(kind, name string) bool {
		_, err := h.Get(ctx, p, kind, "team", name)
		return err == nil
	}
	grants := func() int {
		all, err := h.Secrets().Grants(ctx, p, team)
		must(t, err)
		return len(all)
	}
	secrets := func() int {
		all, err := h.Secrets().List(ctx, p, team)
		must(t, err)
		return len(all)
	}
	digest := func(of agents.Subject) policy.Digest {
		d, err := h.SubjectDigest(ctx, p, of)
		must(t, err)
		return d
	}
	for _, tt := range []struct {
		name string
		op   func(ctx context.Context) error
		done func() bool
	}{
		{"apply", func(ctx context.Context) error {
			r, err := h.Apply(ctx, p, agents.Parse([]byte(in("team", crew)), "a.yaml"), false)
			if err == nil && !r.Committed {
				t.Errorf("not committed, without an error: %s", said(r))
			}
			return err
		}, func() bool { return exists(agents.TeamKind, "crew") && exists(agents.ServerKind, "weather") }},
		{"set a secret", func(ctx context.Context) error { return h.Secrets().Set(ctx, p, team, "LLM", "s3cret") }, func() bool { return secrets() == 1 }},
		{"grant", func(ctx context.Context) error {
			return h.Secrets().Grant(ctx, p, team, "LLM", model, digest(model), "")
		}, func() bool { return grants() == 1 }},
		{"revoke", func(ctx context.Context) error {
			return h.Secrets().Revoke(ctx, p, team, "LLM", digest(model), "")
		}, func() bool { return grants() == 0 }},
		{"delete a secret", func(ctx context.Context) error { return h.Secrets().Delete(ctx, p, team, "LLM") }, func() bool { return secrets() == 0 }},
		{"settings", func(ctx context.Context) error {
			return h.SetSkillSettings(ctx, p, "team", agents.SkillSettings{Allow: []string{"plans"}})
		}, func() bool {
			s, err := h.SkillSettings(ctx, p, "team")
			must(t, err)
			return len(s.Allow) == 1
		}},
		{"review a server", func(ctx context.Context) error {
			return h.ReviewServer(ctx, h.people["owner"], weather, digest(weather), store.Approved, "Fine.")
		}, func() bool {
			s, err := h.ReviewState(ctx, digest(weather))
			must(t, err)
			return s == store.Approved
		}},
		{"delete", func(ctx context.Context) error { return h.Delete(ctx, p, agents.TeamKind, "team", "crew", false) }, func() bool { return !exists(agents.TeamKind, "crew") }},
	} {
		if tt.done() && tt.name != "review a server" {
			t.Errorf("%s: done before it began", tt.name)
		}
		limittest.CancelAtEach(t, tt.op)
		if !tt.done() {
			t.Errorf("%s: not done, without an error", tt.name)
		}
	}
}
