package superseded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/superseded"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
)

// machine is the state of a user on one machine.
type machine struct {
	*testing.T
	dir string
}

func newMachine(t *testing.T) *machine { return &machine{T: t, dir: t.TempDir()} }

// in returns the store of a process in a project.
func (m *machine) in(project string) *superseded.Store {
	return superseded.New(policy.NewFileStore(filepath.Join(m.dir, "grants")), superseded.Options{
		Path: filepath.Join(m.dir, "superseded.json"),
		Scope: func(origin string) string {
			if strings.HasPrefix(origin, "project.") {
				return project
			}
			return "user"
		},
		Active: []string{"user", project},
	})
}

func digest(version string) policy.Digest {
	return policy.Digest("sha256:" + strings.Repeat(version, 64))
}

func grant(origin, version string) policy.Grant {
	return policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: digest(version), Name: "pdf", Origin: origin,
		Permissions: policy.Permissions{Run: true, Network: []string{"a.example"}}, Scope: policy.Always}
}

func (m *machine) approve(s *superseded.Store, origin string, versions ...string) {
	m.Helper()
	for _, v := range versions {
		if _, err := s.Put(m.Context(), grant(origin, v)); err != nil {
			m.Fatal(err)
		}
	}
}

// approved lists the versions that a process finds approved.
func (m *machine) approved(s *superseded.Store) string {
	m.Helper()
	out := ""
	for _, v := range []string{"1", "2", "3"} {
		g, err := s.Find(m.Context(), policy.LocalUser(), digest(v), "")
		switch {
		case err == nil:
			out += v
			if g.Subject != digest(v) {
				m.Errorf("found %+v", g)
			}
		case !errors.Is(err, policy.ErrNotGranted):
			m.Fatal(err)
		}
	}
	return out
}

func (m *machine) want(what string, s *superseded.Store, want string) {
	m.Helper()
	if got := m.approved(s); got != want {
		m.Errorf("%s: approved are %q, want %q", what, got, want)
	}
}

func TestNewApprovalSupersedesOlder(t *testing.T) {
	m := newMachine(t)
	a := m.in("a")
	m.approve(a, "user.loadout", "1", "2")
	m.want("in the scope that moved", a, "2")
	m.want("in any project", m.in("b"), "2")
	_, err := a.FindWith(t.Context(), policy.LocalUser(), digest("1"), "", nil)
	why, ok := errors.AsType[*lease.NotGrantedError](err)
	if !ok || !strings.Contains(why.Reason, "superseded: sha256:222222222222 was approved after sha256:111111111111") || why.Hint == "" {
		t.Errorf("the error is %v", err)
	}
	grants, _, err := a.List(t.Context())
	if err != nil || len(grants) != 1 || grants[0].Subject != digest("2") {
		t.Errorf("listed %+v, %v", grants, err)
	}
	older, err := a.Superseded()
	if err != nil || len(older) != 1 || older[0].Grant.Subject != digest("1") || older[0].By != digest("2") || !slices.Equal(older[0].Scopes, []string{"user"}) {
		t.Errorf("superseded %+v, %v", older, err)
	}
	// Earlier programs read the grants alone.
	if _, err := policy.NewFileStore(filepath.Join(m.dir, "grants")).Find(t.Context(), policy.LocalUser(), digest("1"), ""); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("an earlier program finds the grant: %v", err)
	}

	m.approve(a, "user.loadout", "1")
	m.want("approved again", a, "1")
	m.approve(a, "user.loadout", "3")
	m.want("a third version", a, "3")
}

// Other skills, tools and secrets have approvals of their own.
func TestOtherApprovalsStay(t *testing.T) {
	m := newMachine(t)
	s := m.in("a")
	m.approve(s, "user.loadout", "1")
	m.approve(s, "user.claude", "2")
	for _, change := range []func(*policy.Grant){
		func(g *policy.Grant) { g.Name = "tides" },
		func(g *policy.Grant) { g.Principal = policy.Principal{ID: "bot", Kind: policy.AgentPrincipal} },
		func(g *policy.Grant) { g.Permissions = policy.Permissions{Call: true} },
		func(g *policy.Grant) { g.Permissions = policy.Permissions{Secrets: []string{"KEY"}} },
	} {
		g := grant("user.loadout", "3")
		change(&g)
		if _, err := s.Put(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.approved(s); !strings.HasPrefix(got, "12") {
		t.Errorf("approved are %q", got)
	}
}

// Two projects at two versions both work. Elsewhere, the older version does not.
func TestScopes(t *testing.T) {
	m := newMachine(t)
	a, b := m.in("a"), m.in("b")
	m.approve(a, "project.loadout", "1")
	m.want("before", m.in("c"), "1")
	m.approve(b, "project.loadout", "2")
	m.want("in the project that moved", b, "2")
	m.want("in the other one", a, "12")
	m.want("in a third one", m.in("c"), "2")

	m.approve(m.in("c"), "user.loadout", "1", "3")
	m.want("moved in the user's directories", m.in("c"), "23")
	m.want("in a project that did not move", a, "123")
	m.approve(b, "project.loadout", "1")
	m.want("approved again in a project", b, "13")
	m.want("but not elsewhere", m.in("c"), "3")
	m.approve(a, "project.loadout", "2")
	m.want("when the last project moves", a, "23")
	m.want("and the other one does not", b, "13")
}

// A version counts again in a scope in which the user chose it.
func TestReinstate(t *testing.T) {
	m := newMachine(t)
	a, b := m.in("a"), m.in("b")
	reinstate := func(s *superseded.Store, version, scope string, want bool) {
		t.Helper()
		if got, err := s.Reinstate(t.Context(), digest(version), scope); err != nil || got != want {
			t.Errorf("Reinstate(%s, %s) returned %v, %v", version, scope, got, err)
		}
	}
	m.approve(a, "project.loadout", "1", "2")
	reinstate(a, "2", "a", false) // not superseded
	reinstate(a, "3", "a", false) // not approved
	reinstate(a, "1", "user", false)
	m.want("before", a, "2")
	reinstate(a, "1", "a", true)
	m.want("after", a, "1")
	m.want("elsewhere", b, "1")
	reinstate(b, "2", "b", true)
	m.want("in another project", b, "2")
	m.want("then the first is superseded elsewhere", a, "1")
	m.want("and so are both in a third one", m.in("c"), "")
}

// Approvals that an earlier program revoked do not return.
func TestRevokedByEarlierProgram(t *testing.T) {
	m := newMachine(t)
	a := m.in("a")
	m.approve(a, "project.loadout", "1")
	grants := policy.NewFileStore(filepath.Join(m.dir, "grants"))
	if _, err := grants.Revoke(t.Context(), "pdf"); err != nil {
		t.Fatal(err)
	}
	m.want("revoked", a, "")
	m.approve(m.in("b"), "project.loadout", "2")
	m.want("after the approval of a newer version", a, "2")
}

// The file of an earlier program has no records of versions that were not
// superseded: they count only where they are approved again.
func TestFileOfEarlierProgram(t *testing.T) {
	m := newMachine(t)
	a := m.in("a")
	m.approve(a, "project.loadout", "1", "2")
	path := filepath.Join(m.dir, "superseded.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Version    int               `json:"version"`
		Superseded []json.RawMessage `json:"superseded"`
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Version != 2 {
		t.Fatalf("%s: %v", text, err)
	}
	f.Version = 1
	f.Superseded = slices.DeleteFunc(f.Superseded, func(r json.RawMessage) bool { return bytes.Contains(r, []byte(`"scopes": null`)) })
	if text, err = json.Marshal(f); err != nil || len(f.Superseded) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m.want("as before", a, "2")
	m.approve(m.in("b"), "project.loadout", "3")
	m.want("in the project that moved later", m.in("b"), "3")
	m.want("in the other one", a, "3")
}

func TestRevokeSuperseded(t *testing.T) {
	for _, what := range []string{"pdf", "1111111111", string(digest("1"))} {
		m := newMachine(t)
		s := m.in("a")
		m.approve(s, "project.loadout", "1")
		m.approve(m.in("b"), "project.loadout", "2")
		m.want("before", s, "12")
		gone, err := s.Revoke(t.Context(), what)
		if err != nil || len(gone) == 0 {
			t.Fatalf("revoked %+v, %v", gone, err)
		}
		if got := m.approved(s); strings.Contains(got, "1") {
			t.Errorf("after revoking %s: %q", what, got)
		}
		if _, err := s.Revoke(t.Context(), digest("1").Short()); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("again: %v", err)
		}
	}
}

// A damaged file, and one of a later program, deny.
func TestUnreadableFile(t *testing.T) {
	m := newMachine(t)
	s := m.in("a")
	m.approve(s, "user.loadout", "1", "2")
	path := filepath.Join(m.dir, "superseded.json")
	for _, text := range []string{`{`, `{"version":3,"superseded":[]}`, `{"version":1,"superseded":[{"grant":{}}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, v := range []string{"1", "2"} {
			if _, err := s.Find(t.Context(), policy.LocalUser(), digest(v), ""); err == nil || errors.Is(err, policy.ErrNotGranted) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", text, err)
			}
		}
		if _, err := s.Put(t.Context(), grant("user.loadout", "3")); err == nil {
			t.Errorf("%s is overwritten", text)
		}
		if _, err := policy.NewFileStore(filepath.Join(m.dir, "grants")).Find(t.Context(), policy.LocalUser(), digest("3"), ""); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("an approval that failed counts: %v", err)
		}
	}
}

func TestConcurrentApprovals(t *testing.T) {
	m := newMachine(t)
	var wait sync.WaitGroup
	for _, v := range []string{"1", "2", "3", "1", "2", "3"} {
		wait.Go(func() {
			if _, err := m.in("a").Put(t.Context(), grant("user.loadout", v)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	m.approve(m.in("a"), "user.loadout", "2")
	m.want("in the end", m.in("a"), "2")
}

// Without scopes, the store is like the one that it uses.
func TestStore(t *testing.T) {
	loadouttest.PolicyStore(t, func(t *testing.T) policy.Store {
		dir := t.TempDir()
		return superseded.New(policy.NewFileStore(filepath.Join(dir, "grants")), superseded.Options{Path: filepath.Join(dir, "superseded.json"),
			Scope: func(string) string { return "" }})
	})
}

// unlistable is a store that cannot list its grants.
type unlistable struct{ policy.Store }

func (unlistable) List(context.Context) ([]policy.Grant, []policy.Problem, error) {
	return nil, nil, errors.New("cannot list")
}

// A version whose older approvals cannot be found is not approved.
func TestOlderApprovalsCannotBeListed(t *testing.T) {
	m := newMachine(t)
	grants := policy.NewMemoryStore()
	s := superseded.New(unlistable{grants}, superseded.Options{Path: filepath.Join(m.dir, "superseded.json"), Scope: func(string) string { return "user" }})
	if _, err := s.Put(t.Context(), grant("user.loadout", "1")); err == nil || !strings.Contains(err.Error(), "cannot list") {
		t.Errorf("put: %v", err)
	}
	if _, err := grants.Find(t.Context(), policy.LocalUser(), digest("1"), ""); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("find: %v", err)
	}
}

// The newest version supersedes all others, also those that were superseded before.
func TestNewestVersionSupersedesAll(t *testing.T) {
	m := newMachine(t)
	s := m.in("a")
	m.approve(s, "user.loadout", "1", "2", "3")
	all, err := s.Superseded()
	if err != nil || len(all) != 2 {
		t.Fatalf("superseded %+v, %v", all, err)
	}
	for _, a := range all {
		if a.By != digest("3") || a.At.IsZero() || !slices.Equal(a.Scopes, []string{"user"}) {
			t.Errorf("superseded %+v", a)
		}
	}
}
