package agents_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/skill"
)

func TestMain(m *testing.M) {
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// hub is a registry with users: four members of the group team, one without a group, and
// an admin.
type hub struct {
	*agents.Registry
	t      testing.TB
	db     *store.DB
	people map[string]account.Principal
	team   store.Namespace
}

func newHub(t testing.TB, db *store.DB, opts *agents.Options) *hub {
	t.Helper()
	if opts == nil {
		opts = &agents.Options{}
	}
	if opts.Cipher == nil {
		sealer, err := encryption.New(encryption.NewKey())
		must(t, err)
		opts.Cipher = sealer
	}
	opts.Private = append(opts.Private, netip.MustParsePrefix("127.0.0.0/8"))
	h := &hub{Registry: agents.New(db, opts), t: t, db: db, people: map[string]account.Principal{}}
	g, err := db.Groups.Create(t.Context(), store.Group{Name: "team"})
	must(t, err)
	h.team = store.GroupNamespace(g.ID)
	for _, name := range []string{"owner", "maintainer", "developer", "reporter", "outsider", "admin"} {
		u, err := db.Users.Create(t.Context(), store.User{Name: name})
		must(t, err)
		p := account.Principal{User: account.UserID(u.ID), Name: name, Admin: name == "admin", Scopes: account.AllScopes}
		if role, err := account.ParseRole(name); err == nil {
			p.Groups = map[account.GroupID]account.Role{account.GroupID(g.ID): role}
			must(t, db.Groups.SetMember(t.Context(), store.Member{GroupID: g.ID, UserID: u.ID, Role: store.Role(name)}))
		}
		h.people[name] = p
	}
	h.people["nobody"] = account.Principal{}
	return h
}

func sqlite(t testing.TB) *store.DB { return storetest.Open(t, storetest.SQLite(t)) }

func (h *hub) of(name string) store.Namespace {
	return store.UserNamespace(string(h.people[name].User))
}

// try applies documents.
func (h *hub) try(who, yaml string) *agents.Result {
	h.t.Helper()
	result, err := h.Apply(h.t.Context(), h.people[who], agents.Parse([]byte(yaml), "a.yaml"), false)
	must(h.t, err)
	return result
}

// apply applies documents, none of which may be refused.
func (h *hub) apply(who, yaml string) *agents.Result {
	h.t.Helper()
	result := h.try(who, yaml)
	if !result.Committed {
		h.t.Fatalf("it was not kept: %s", said(result))
	}
	return result
}

// upload adds a skill with one version.
func (h *hub) upload(in store.Namespace, name, digest string) store.Skill {
	h.t.Helper()
	ctx := h.t.Context()
	s, err := h.db.Skills.Create(ctx, store.Skill{Namespace: in, Name: name, CreatedBy: "someone"})
	must(h.t, err)
	hashes, err := h.db.Blobs.Put(ctx, []byte(name+digest))
	must(h.t, err)
	v, err := h.db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: digest}, []store.File{{Path: "SKILL.md", SHA256: hashes[0], Size: int64(len(name + digest))}}, nil)
	must(h.t, err)
	must(h.t, h.db.Skills.SetCurrent(ctx, s.ID, v.Number))
	s, err = h.db.Skills.Get(ctx, s.ID)
	must(h.t, err)
	return s
}

func (h *hub) profile(who, kind, namespace, name string) *agents.Profile {
	h.t.Helper()
	p, err := h.Profile(h.t.Context(), h.people[who], kind, namespace, name)
	must(h.t, err)
	return p
}

// said returns the results of documents, a line each, with warnings and errors.
func said(r *agents.Result) string {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s %s/%s", c.Outcome, c.Kind, c.Name)
		for _, d := range c.Findings.Problems() {
			fmt.Fprintf(&b, "; %d:%d %s", d.Line, d.Column, d.Code)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func wantEqual(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got + and want -:\n%s", diff)
	}
}

// found are findings as LINE:COLUMN CODE, worse ones than notes.
func found(docs []*agents.Document) []string {
	var out []string
	for _, d := range docs {
		for _, f := range d.Findings {
			if f.Severity != skill.Info {
				out = append(out, fmt.Sprintf("%s %d:%d %s", f.Severity, f.Line, f.Column, f.Code))
			}
		}
	}
	return out
}
