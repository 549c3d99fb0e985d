package agents_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// A secret is set and granted. It is returned only to the server that it was granted to,
// for a user who may use it.
func TestSecrets(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	h := newHub(t, storetest.Open(t, "sqlite:"+filepath.Join(dir, "hub.db")), nil)
	const value = "correct-horse-battery-staple"
	me, own := h.people["maintainer"], agents.NamespaceOwner(h.of("maintainer"))
	team, skill := agents.NamespaceOwner(h.team), h.upload(h.team, "pdf", digestA)
	of := agents.Subject{Kind: agents.SkillKind, Name: "pdf"}
	for _, o := range []agents.Owner{own, team, agents.SkillOwner(skill.ID)} {
		must(t, h.Secrets().Set(ctx, me, o, "KEY", value+string(o)))
	}
	granted := func(who string) string {
		t.Helper()
		g, err := h.Secrets().GrantedValues(ctx, h.people[who], policy.Digest(digestA), agents.SkillOwner(skill.ID), h.team, "")
		must(t, err)
		v, _ := g.Secret("KEY")
		return strings.TrimPrefix(v, value)
	}
	wantEqual(t, granted("reporter"), "")
	d, err := h.SubjectDigest(ctx, me, of)
	must(t, err)
	for _, o := range []agents.Owner{team, agents.SkillOwner(skill.ID), own} {
		must(t, h.Secrets().Grant(ctx, me, o, "KEY", of, d, ""))
		must(t, h.Secrets().Grant(ctx, me, o, "KEY", of, d, "")) // again is the same
	}
	// His own, else the skill's, else the group's.
	wantEqual(t, granted("maintainer"), string(own))
	wantEqual(t, granted("reporter"), string(agents.SkillOwner(skill.ID)))
	must(t, h.Secrets().Revoke(ctx, me, agents.SkillOwner(skill.ID), "KEY", d, ""))
	wantEqual(t, granted("reporter"), string(team))
	grants, err := h.Secrets().Grants(ctx, me, team)
	must(t, err)
	if len(grants) != 1 || grants[0].Subject != "Skill/pdf" || grants[0].Digest != policy.Digest(digestA) || grants[0].By != string(me.User) {
		t.Errorf("%+v", grants)
	}

	// A secret that was deleted and set again is a new one without grants.
	must(t, h.Secrets().Delete(ctx, me, team, "KEY"))
	must(t, h.Secrets().Set(ctx, me, team, "KEY", value))
	wantEqual(t, granted("reporter"), "")
	names, err := h.Secrets().List(ctx, me, team)
	must(t, err)
	if len(names) != 1 || names[0].Name != "KEY" {
		t.Errorf("%+v", names)
	}

	wantError(t, h.Secrets().Grant(ctx, me, team, "NONE", of, d, ""), store.ErrNotFound)
	wantError(t, h.Secrets().Grant(ctx, me, team, "KEY", agents.Subject{Kind: agents.SkillKind, Name: "none"}, d, ""), store.ErrNotFound)
	wantError(t, h.Secrets().Grant(ctx, me, team, "KEY", of, "sha256:other", ""), store.ErrConflict)
	wantError(t, h.Secrets().Set(ctx, me, team, "no name", value), store.ErrInvalid)
	wantError(t, h.Secrets().Set(ctx, me, team, "EMPTY", ""), store.ErrInvalid)
	wantError(t, h.Secrets().Set(ctx, me, team, "LONG", strings.Repeat("x", encryption.MaxValue+1)), store.ErrInvalid)
	wantError(t, h.Secrets().Set(ctx, me, "elsewhere", "KEY", value), store.ErrInvalid)
	wantError(t, h.Secrets().Delete(ctx, h.people["outsider"], team, "KEY"), store.ErrNotFound)

	// It is in no table in plain text: not with the secrets, and not in the audit log.
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		if bytes.Contains(b, []byte(value)) {
			t.Errorf("%s has the value in plain text", f.Name())
		}
	}
}

// A hub without a key keeps no secrets, and a row that was moved is worth nothing.
func TestSecretsAreEncrypted(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	me, own := h.people["reporter"], agents.NamespaceOwner(h.of("reporter"))
	wantError(t, agents.New(h.db, nil).Secrets().Set(ctx, me, own, "KEY", "v"), agents.ErrNoKey)

	must(t, h.Secrets().Set(ctx, h.people["outsider"], agents.NamespaceOwner(h.of("outsider")), "KEY", "of-the-outsider"))
	row, err := h.db.Secrets.Get(ctx, string(h.of("outsider")), "KEY")
	must(t, err)
	row.Owner = string(own)
	must(t, h.db.Secrets.Put(ctx, row))
	h.upload(h.of("reporter"), "pdf", digestA)
	must(t, h.Secrets().Grant(ctx, me, own, "KEY", agents.Subject{Kind: agents.SkillKind, Name: "pdf"}, digestA, ""))
	_, err = h.Secrets().GrantedValues(ctx, me, digestA, "", h.of("reporter"), "")
	wantError(t, err, encryption.ErrAltered)
}

// A thing that is deleted takes its own secrets along.
func TestServerSecrets(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	h.apply("reporter", head("MCPServer")+"spec: {url: 'https://s.example.com', headers: {Authorization: '${{secrets.KEY}}'}}")
	me := h.people["reporter"]
	res, err := h.Get(ctx, me, agents.ServerKind, "", "x")
	must(t, err)
	own := agents.ServerOwner(res.ID)
	wantError(t, h.Secrets().Set(ctx, h.people["outsider"], own, "KEY", "v"), store.ErrNotFound)
	must(t, h.Secrets().Set(ctx, me, own, "KEY", "v4lue"))
	servers, err := h.DefinedServers(ctx, me, agents.ServerKind, "", "x")
	must(t, err)
	must(t, h.Secrets().Grant(ctx, me, own, "KEY", agents.Subject{Kind: agents.ServerKind, Name: "x"}, servers[0].PolicyDigest(), ""))
	v, err := h.Secrets().ServerVariables(ctx, me, servers[0], "")
	must(t, err)
	if c, unset := servers[0].Resolve(v); c == nil || c.Headers["Authorization"] != "v4lue" {
		t.Errorf("%v %v", c, unset)
	}
	_, err = h.Secrets().ServerVariables(ctx, h.people["outsider"], servers[0], "")
	wantError(t, err, store.ErrNotFound)
	must(t, h.Delete(ctx, me, agents.ServerKind, "", "x", false))
	_, err = h.db.Secrets.Get(ctx, string(own), "KEY")
	wantError(t, err, store.ErrNotFound)
}

func TestSecretLimit(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	me, own := h.people["reporter"], agents.NamespaceOwner(h.of("reporter"))
	for i := range agents.MaxSecrets {
		must(t, h.Secrets().Set(t.Context(), me, own, fmt.Sprint("S", i), "v"))
	}
	wantError(t, h.Secrets().Set(t.Context(), me, own, "MORE", "v"), store.ErrTooMany)
	must(t, h.Secrets().Set(t.Context(), me, own, "S0", "w"))
}

// The instructions for a platform value name an owner whose values the server gets:
// a Ghost or Bot for the server of a skill, and otherwise the document that defines it.
func TestHowToSetPlatformValue(t *testing.T) {
	for owner, want := range map[upstream.Owner]string{
		upstream.SkillOwner("team/pdf", "sha256:0123"): "server:ID of a Ghost or Bot,",
		"Ghost helper (1)":     "server:ID of a Ghost,",
		"Bot helper (2)":       "server:ID of a Bot,",
		"MCPServer search (3)": "server:ID of an MCPServer,",
		"":                     "server:ID of an MCPServer,",
	} {
		if got := agents.HowToSet(owner, upstream.FromPlatform, "task_token"); !strings.Contains(got, want) {
			t.Errorf("for a server of %q: %s, want %s", owner, got, want)
		}
	}
}
