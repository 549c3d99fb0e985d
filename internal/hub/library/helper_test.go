package library_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/skill"
)

// fixture is a hub with users: ada, bob and eve have accounts, root is an admin. In the
// group team, ada is a developer, bob a reporter and meg a maintainer; eve is in no
// group.
type fixture struct {
	t   testing.TB
	db  *store.DB
	lib *library.Library
	ctx context.Context

	ada, bob, eve, meg, root account.Principal
	team                     store.Namespace
}

func newFixture(t testing.TB, db *store.DB, o *library.Options) *fixture {
	t.Helper()
	w := &fixture{t: t, db: db, ctx: t.Context()}
	if o == nil {
		o = &library.Options{}
	}
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	if o.CacheDir == "" {
		o.CacheDir = t.TempDir()
	}
	o.Unbind = unbind
	w.lib = w.node(o)
	g := must(db.Groups.Create(w.ctx, store.Group{Name: "team"}))(t)
	w.team = store.GroupNamespace(g.ID)
	person := func(name string, role account.Role) account.Principal {
		u := must(db.Users.Create(w.ctx, store.User{Name: name}))(t)
		p := account.Principal{User: account.UserID(u.ID), Name: name, Scopes: account.AllScopes, Groups: map[account.GroupID]account.Role{}}
		if role != account.Outsider {
			p.Groups[account.GroupID(g.ID)] = role
			mustDo(t, db.Groups.SetMember(w.ctx, store.Member{GroupID: g.ID, UserID: u.ID, Role: store.Role(role.String())}))
		}
		return p
	}
	w.ada, w.bob = person("ada", account.Developer), person("bob", account.Reporter)
	w.meg, w.eve = person("meg", account.Maintainer), person("eve", account.Outsider)
	w.root = person("root", account.Outsider)
	w.root.Admin = true
	return w
}

// node is a library on the same database, as another node has it.
func (w *fixture) node(o *library.Options) *library.Library {
	w.t.Helper()
	l := must(library.New(w.db, o))(w.t)
	w.t.Cleanup(func() { mustDo(w.t, l.Close()) })
	return l
}

func sqlite(t testing.TB, o *library.Options) *fixture {
	t.Helper()
	return newFixture(t, storetest.Open(t, storetest.SQLite(t)), o)
}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, w *fixture)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newFixture(t, db, nil)) })
}

func ownNamespace(p account.Principal) store.Namespace { return store.UserNamespace(string(p.User)) }

// ghost is a kind as the tests have it: the names of its skills.
type ghost struct {
	Skills []string `json:"skills"`
}

// unbind takes a skill out of a ghost.
func unbind(ctx context.Context, tx *store.Tx, k store.Kind, _, name string) error {
	var g ghost
	if err := json.Unmarshal(k.Spec, &g); err != nil {
		return err
	}
	kept := []string{}
	for _, s := range g.Skills {
		if s != name {
			kept = append(kept, s)
		}
	}
	spec, err := json.Marshal(ghost{kept})
	if err != nil {
		return err
	}
	_, err = tx.Kinds.Update(ctx, k.ID, k.Generation, spec)
	return err
}

// ghost makes one in a namespace that names a skill.
func (w *fixture) ghost(in store.Namespace, name string, to store.Reference) store.Kind {
	w.t.Helper()
	to.Slot, to.ToKind = "skills", store.SkillKind
	spec := must(json.Marshal(ghost{[]string{to.ToName}}))(w.t)
	var k store.Kind
	mustDo(w.t, w.db.Tx(w.ctx, func(tx *store.Tx) (err error) {
		if k, err = tx.Kinds.Create(w.ctx, store.Kind{Kind: "Ghost", Namespace: in, Name: name, Spec: spec}); err != nil {
			return err
		}
		return tx.Refs.Set(w.ctx, "Ghost", k.ID, []store.Reference{to})
	}))
	return k
}

// files returns the files of a skill with a body, and additional ones by path and
// content.
func files(name, body string, more ...string) fstest.MapFS {
	out := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: Does what " + name + " does.\nversion: 1.0\n---\n" + body + "\n")}}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return out
}

// pack returns an archive of files in one folder.
func pack(t testing.TB, folder string, files fs.FS) []byte {
	t.Helper()
	var out bytes.Buffer
	_, _, err := skill.WriteZIP(&out, files, folder)
	mustDo(t, err)
	return out.Bytes()
}

func upload(t testing.TB, name, body string, more ...string) library.Package {
	t.Helper()
	return library.Package{FileName: name + ".zip", Data: bytes.NewReader(pack(t, name, files(name, body, more...)))}
}

// upload adds a skill.
func (w *fixture) upload(p account.Principal, in store.Namespace, name, body string, more ...string) *library.Skill {
	w.t.Helper()
	return must(w.lib.Upload(w.ctx, p, in, upload(w.t, name, body, more...)))(w.t)
}

// version adds a version.
func (w *fixture) version(p account.Principal, s *library.Skill, body string, more ...string) *library.Version {
	w.t.Helper()
	return must(w.lib.AddVersion(w.ctx, p, s.ID, upload(w.t, s.Name, body, more...)))(w.t)
}

// list returns the first page of a list.
func (w *fixture) list(p account.Principal, q library.Query) ([]*library.Skill, error) {
	found, err := w.lib.List(w.ctx, p, q)
	if err != nil {
		return nil, err
	}
	return found.Skills, nil
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func mustDo(t testing.TB, err error) {
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

func wantDenied(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*account.DeniedError](err); !ok {
		t.Errorf("error is %v, want a denial", err)
	}
}

func names[T any](rows []T, name func(T) string) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, name(r))
	}
	return out
}

func skillNames(rows []*library.Skill) []string {
	return names(rows, func(s *library.Skill) string { return s.Name })
}
