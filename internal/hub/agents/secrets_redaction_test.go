package agents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// The secrets of a conversation, its owner and the owner's groups are listed, with those
// who may receive them. Platform values that are no secrets are not.
func TestSecretsToRedact(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	me, own, team := h.people["maintainer"], agents.NamespaceOwner(h.of("maintainer")), agents.NamespaceOwner(h.team)
	session, err := h.db.Sessions.Create(ctx, store.Session{Owner: string(me.User)})
	must(t, err)
	of := agents.SessionOwner(session.ID)
	h.upload(h.team, "pdf", digestA)
	h.apply("maintainer", head("MCPServer")+"spec: {url: 'https://s.example.com', headers: {Authorization: '${{secrets.KEY}}'}}")
	for owner, values := range map[agents.Owner]map[string]string{
		own:                                     {"KEY": "my-secret", "variable.backend_url": "https://wegent.example.com"},
		team:                                    {"KEY": "of-the-team", "UNUSED": "of-the-team-too"},
		of:                                      {"variable.task_token": "of-the-task", "variable.user_name": "maintainer"},
		agents.NamespaceOwner(h.of("outsider")): {"KEY": "of-another"},
	} {
		for name, value := range values {
			p := me
			if owner == agents.NamespaceOwner(h.of("outsider")) {
				p = h.people["outsider"]
			}
			must(t, h.Secrets().Set(ctx, p, owner, name, value))
		}
	}
	servers, err := h.DefinedServers(ctx, me, agents.ServerKind, "", "x")
	must(t, err)
	must(t, h.Secrets().Grant(ctx, me, own, "KEY", agents.Subject{Kind: agents.ServerKind, Name: "x"}, servers[0].PolicyDigest(), ""))
	must(t, h.Secrets().Grant(ctx, me, team, "KEY", agents.Subject{Kind: agents.SkillKind, Name: "pdf"}, policy.Digest(digestA), ""))
	want := map[string]agents.SecretToRedact{
		"my-secret":       {Owner: own, Name: "KEY", Own: true, Servers: []string{"x"}},
		"of-the-team":     {Owner: team, Name: "KEY", Skills: []string{"pdf"}},
		"of-the-team-too": {Owner: team, Name: "UNUSED"},
		"of-the-task":     {Owner: of, Name: "variable.task_token", Own: true},
	}
	got := map[string]agents.SecretToRedact{}
	all, err := h.Secrets().ToRedact(ctx, me, session.ID, nil)
	must(t, err)
	for _, s := range all {
		value := s.Value
		s.Value = ""
		got[value] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got + and want -:\n%s", diff)
	}

	// With another key, or without one, they are listed without values.
	cipher, err := encryption.New(encryption.NewKey())
	must(t, err)
	for _, o := range []*agents.Options{{Cipher: cipher}, nil} {
		all, err := agents.New(h.db, o).Secrets().ToRedact(ctx, account.Principal{User: me.User, Groups: me.Groups}, session.ID, nil)
		must(t, err)
		for _, s := range all {
			if s.Value != "" {
				t.Errorf("%s has the value %q", s.Name, s.Value)
			}
		}
		wantEqual(t, len(all), len(want))
	}
}

// The secrets of the agent's namespace and of those of the skills that the conversation
// used are listed, though the user is in neither group.
func TestSecretsOfOtherGroupsToRedact(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	me, team := h.people["outsider"], agents.NamespaceOwner(h.team)
	skill := h.upload(h.team, "pdf", digestA)
	must(t, h.Secrets().Set(ctx, h.people["maintainer"], team, "KEY", "of-the-team"))
	must(t, h.Secrets().Set(ctx, h.people["maintainer"], agents.SkillOwner(skill.ID), "KEY", "of-the-skill"))
	for _, test := range []struct {
		agent  string
		skills []string
		want   int
	}{
		{"", nil, 0},
		{"", []string{skill.ID, "deleted"}, 2},
		{"Ghost/" + string(h.team) + "/pilot", nil, 2},
		{"Ghost/public/pilot", nil, 0},
	} {
		session, err := h.db.Sessions.Create(ctx, store.Session{Owner: string(me.User), Agent: test.agent})
		must(t, err)
		got, err := h.Secrets().ToRedact(ctx, me, session.ID, test.skills)
		must(t, err)
		wantEqual(t, len(got), test.want)
		for _, s := range got {
			if s.Own || !strings.HasPrefix(s.Value, "of-the-") {
				t.Errorf("%+v", s)
			}
		}
	}
}

// Platform values are secrets if their names or their values say so, whatever the words.
func TestPlatformValuesToRedact(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	me, own := h.people["maintainer"], agents.NamespaceOwner(h.of("maintainer"))
	session, err := h.db.Sessions.Create(ctx, store.Session{Owner: string(me.User)})
	must(t, err)
	values := map[string]string{"backend_url": "https://wegent.example.com", "user_name": "maintainer", "company": "Opinion Dsnake", "path": "/srv/data", "spinner": "dots99",
		"report_to": "https://chat.example.com/hooks/T0/B0/x1y2z3", "database": "postgres://ada:harbour42@db.example.com/x"}
	secret := []string{"report_to", "database"}
	for _, name := range []string{"GITHUB_PAT", "DB_PWD", "PIN", "SLACK_WEBHOOK", "WEBHOOK_URL", "SESSION_COOKIE", "DSN", "SIGNING", "PRIVATE", "OTP", "task_token"} {
		values[name] = "value-of-" + name
		secret = append(secret, name)
	}
	for name, value := range values {
		must(t, h.Secrets().Set(ctx, me, own, "variable."+name, value))
	}
	all, err := h.Secrets().ToRedact(ctx, me, session.ID, nil)
	must(t, err)
	var got []string
	for _, s := range all {
		got = append(got, strings.TrimPrefix(s.Name, "variable."))
	}
	slices.Sort(got)
	slices.Sort(secret)
	if diff := cmp.Diff(secret, got); diff != "" {
		t.Errorf("got + and want -:\n%s", diff)
	}
}
