package loadout_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

const needing = "---\nname: report\ndescription: Reports.\ndependencies: [base]\n---\n# Report\n"

func approvable() files {
	return files{
		"report/SKILL.md": needing,
		"report/hi.sh":    "echo hi\n",
		"report/data.txt": "data",
		"base/SKILL.md":   skillText("base", "# Base\n"),
		"base/part.txt":   "part",
	}
}

// An agent runs a script only if the user approved exactly its bytes.
func TestApprovalAppliesToDigestOnly(t *testing.T) {
	approve := func(s *shop) { s.approve(t, "report") }
	write := func(name, text string) func(*shop) {
		return func(s *shop) { files{name: text}.write(t, s.dir) }
	}
	for _, tt := range []struct {
		name   string
		steps  []func(*shop)
		code   string // "" if it runs
		reason string
	}{
		{"nothing approved", nil, decision.NotApproved, "skill report may not run scripts: not approved"},
		{"approved", []func(*shop){approve}, "", ""},
		{"a byte of the script", []func(*shop){approve, write("report/hi.sh", "echo ho\n")}, decision.Changed, "changed since it was approved"},
		{"a byte of another file", []func(*shop){approve, write("report/data.txt", "dato")}, decision.Changed, "changed since it was approved"},
		{"a byte of the instructions", []func(*shop){approve, write("report/SKILL.md", needing+" ")}, decision.Changed, "changed since it was approved"},
		{"a file more", []func(*shop){approve, write("report/more.txt", "")}, decision.Changed, "changed since it was approved"},
		{"a file less", []func(*shop){approve, func(s *shop) { os.Remove(filepath.Join(s.dir, "report/data.txt")) }}, decision.Changed, "changed since it was approved"},
		{"a byte of what it needs", []func(*shop){approve, write("base/part.txt", "port")}, decision.Changed, "dependency base (sha256:"},
		{"changed and approved again", []func(*shop){approve, write("base/part.txt", "port"), approve}, "", ""},
		{"changed and changed back", []func(*shop){approve, write("report/data.txt", "dato"), write("report/data.txt", "data")}, "", ""},
		{"approved for another", []func(*shop){func(s *shop) { s.approve(t, "report", func(g *policy.Grant) { g.Principal.ID = "other" }) }}, decision.NotApproved, "not approved"},
		{"approved for a person", []func(*shop){func(s *shop) {
			s.approve(t, "report", func(g *policy.Grant) { g.Principal = policy.Principal{ID: "robot", Kind: policy.UserPrincipal} })
		}}, decision.NotApproved, "not approved"},
		{"approved for another session", []func(*shop){func(s *shop) {
			s.approve(t, "report", func(g *policy.Grant) { g.Scope, g.Session = policy.ForSession, "other" })
		}}, decision.NotApproved, "not approved"},
		{"approved, but not to run", []func(*shop){func(s *shop) { s.approve(t, "report", func(g *policy.Grant) { g.Permissions.Run = false }) }}, decision.NotApproved, "not to run scripts"},
		{"revoked", []func(*shop){approve, func(s *shop) { s.grants.Revoke(t.Context(), "report") }}, decision.NotApproved, "not approved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, approvable(), nil)
			for _, step := range tt.steps {
				step(s)
			}
			res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"})
			recs, ends := s.audit.take()
			if len(recs) != 1 || recs[0].Principal != robot || recs[0].Name != "report" || recs[0].Action != "run" {
				t.Fatalf("recorded is %+v, want the one decision", recs)
			}
			if tt.code != "" {
				refused(t, res, err, tt.code, tt.reason, "approve it after a review")
				if len(ends) > 0 || recs[0].Decision != policy.Deny || recs[0].Details["code"] != string(tt.code) {
					t.Errorf("recorded is %+v", recs[0])
				}
				return
			}
			if err != nil || res.Stdout != "hi\n" || res.Digest != string(recs[0].Subject) || recs[0].Decision != policy.Allow || recs[0].Details["grant"] == "" {
				t.Errorf("got %+v, %v, recorded %+v", res, err, recs[0])
			}
			if len(ends) != 1 || ends[0].Principal != robot || ends[0].Reason != "ok" || ends[0].Subject != recs[0].Subject || ends[0].Details["script"] != "hi.sh" || ends[0].Details["exit_code"] != "0" {
				t.Errorf("of the end is recorded %+v", ends)
			}
		})
	}
}

func TestGrantForOneUseIsConsumed(t *testing.T) {
	s := newShop(t, approvable(), nil)
	s.approve(t, "report", func(g *policy.Grant) { g.Scope = policy.Once })
	if res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"}); err != nil || res.Stdout != "hi\n" {
		t.Fatalf("got %+v, %v", res, err)
	}
	res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"})
	refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
}

// If two runs use the last grant at once, one is refused, and that is recorded.
func TestConsumedGrantIsRefused(t *testing.T) {
	s := newShop(t, approvable(), func(s *shop, o *loadout.Options) { o.Scripts.Grants = &usedUp{s.grants} })
	s.approve(t, "report", func(g *policy.Grant) { g.Scope = policy.Once })
	res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"})
	refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
	if recs, _ := s.audit.take(); len(recs) != 2 || recs[1].Decision != policy.Deny {
		t.Errorf("recorded is %+v, want the grant and the refusal", recs)
	}
}

// usedUp is a store whose grants another process uses up once they are found.
type usedUp struct{ policy.Store }

func (u *usedUp) Find(ctx context.Context, p policy.Principal, d policy.Digest, session string) (*policy.Grant, error) {
	g, err := u.Store.Find(ctx, p, d, session)
	if err == nil {
		_, err = u.Store.Revoke(ctx, g.ID)
	}
	return g, err
}

func TestRunsTypedByUserNeedNoGrant(t *testing.T) {
	s := newShop(t, approvable(), nil)
	if out := s.says(t, loadout.Run{Skill: "report", Script: "hi.sh"}); out != "hi\n" {
		t.Errorf("got %q", out)
	}
	if grants, _, err := s.grants.List(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("grants %v, %v, want none", grants, err)
	}
	recs, _ := s.audit.take()
	if len(recs) != 1 || recs[0].Decision != policy.Allow || recs[0].Details["code"] != "typed" || recs[0].Principal != policy.LocalUser() {
		t.Errorf("recorded is %+v", recs)
	}
	res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh", Principal: robot, ByUser: true})
	refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
	res, err = s.Run(t.Context(), loadout.Run{Skill: "report", Script: "hi.sh"}) // by the user, who did not type the command
	refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
}

func TestBundledSkillsRun(t *testing.T) {
	s := newShop(t, nil, func(s *shop, o *loadout.Options) {
		o.Sources = append(o.Sources, catalog.NewFS("bundled", catalog.Bundled, fstest.MapFS{
			"own/SKILL.md":   {Data: []byte(skillText("own", "x"))},
			"own/hi.sh":      {Data: []byte("echo hi")},
			"mixed/SKILL.md": {Data: []byte("---\nname: mixed\ndescription: x\ndependencies: [theirs]\n---\n")},
			"mixed/hi.sh":    {Data: []byte("echo hi")},
		}))
		files{"theirs/SKILL.md": skillText("theirs", "x")}.write(t, s.dir)
	})
	if res, err := s.try(t, loadout.Run{Skill: "own", Script: "hi.sh"}); err != nil || res.Stdout != "hi\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	// A bundled skill that needs another's skill is not fully bundled.
	res, err := s.try(t, loadout.Run{Skill: "mixed", Script: "hi.sh"})
	refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
}

type brokenStore struct{ policy.Store }

func (brokenStore) Find(context.Context, policy.Principal, policy.Digest, string) (*policy.Grant, error) {
	return nil, fs.ErrPermission
}

func TestPolicyFailsClosed(t *testing.T) {
	t.Run("a store that cannot be read", func(t *testing.T) {
		s := newShop(t, approvable(), func(s *shop, o *loadout.Options) { o.Scripts.Grants = brokenStore{s.grants} })
		s.approve(t, "report")
		res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"})
		refused(t, res, err, decision.Unreadable, "cannot read grants", "")
	})
	t.Run("no store", func(t *testing.T) {
		s := newShop(t, approvable(), func(s *shop, o *loadout.Options) { o.Scripts.Grants = nil })
		res, err := s.try(t, loadout.Run{Skill: "report", Script: "hi.sh"})
		refused(t, res, err, decision.NotApproved, "not approved", "approve it after a review")
	})
	t.Run("an audit log that cannot be written", func(t *testing.T) {
		s := newShop(t, approvable(), nil)
		s.audit.err = fs.ErrPermission
		s.approve(t, "report")
		for _, run := range []loadout.Run{{Skill: "report", Script: "hi.sh"}, {Skill: "report", Script: "hi.sh", ByUser: true}} {
			began := newSignal()
			run.Stdout = began
			if res, err := s.try(t, run); res != nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "record") {
				t.Errorf("got %+v, %v", res, err)
			}
			select {
			case <-began.c:
				t.Error("it ran")
			default:
			}
		}
	})
	t.Run("a store that fails while it runs", func(t *testing.T) {
		var broken *turning
		s := newShop(t, sleeper(), func(s *shop, o *loadout.Options) {
			broken = &turning{Store: s.grants, bad: make(chan struct{})}
			o.Scripts.Grants = broken
		})
		s.approve(t, "sleeper")
		ended(t, s, "sleeper", func() { close(broken.bad) })
	})
	t.Run("no sandbox", func(t *testing.T) {
		rt, _ := runtimeOf(t, approvable())
		if _, err := rt.Run(t.Context(), loadout.Run{Skill: "report", Script: "hi.sh", ByUser: true}); !errors.Is(err, loadout.ErrNoScripts) || rt.RunsScripts() {
			t.Errorf("got %v", err)
		}
	})
}

// turning is a store that can be read until bad is closed.
type turning struct {
	policy.Store
	bad chan struct{}
}

func (s *turning) Find(ctx context.Context, p policy.Principal, d policy.Digest, session string) (*policy.Grant, error) {
	select {
	case <-s.bad:
		return nil, fs.ErrPermission
	default:
		return s.Store.Find(ctx, p, d, session)
	}
}

func sleeper() files {
	return files{
		"sleeper/SKILL.md": "---\nname: sleeper\ndescription: Sleeps.\ndependencies: [bed]\n---\n",
		"sleeper/sleep.sh": "mkdir -p out; echo part > out/part; echo began; exec sleep 600\n",
		"sleeper/hi.sh":    "echo hi\n",
		"bed/SKILL.md":     skillText("bed", "x"),
		"other/SKILL.md":   skillText("other", "x"),
	}
}

// ended starts the script that sleeps, performs an action, and checks that it
// ended the script.
func ended(t *testing.T, s *shop, name string, do func()) {
	t.Helper()
	began := newSignal()
	type answer struct {
		res *loadout.RunResult
		err error
	}
	done := make(chan answer, 1)
	go func() {
		res, err := s.try(t, loadout.Run{Skill: name, Script: "sleep.sh", Stdout: began, NewFolder: true})
		done <- answer{res, err}
	}()
	select {
	case <-began.c:
		do()
	case a := <-done:
		t.Fatalf("it ended early: %+v, %v", a.res, a.err)
	}
	a := <-done
	if a.err != nil || a.res.Reason != sandbox.Disabled || !a.res.Killed || a.res.Stdout != "began\n" {
		t.Fatalf("got %+v, %v; want a run that was ended as disabled", a.res, a.err)
	}
	if len(a.res.Files) != 1 || a.res.Folder == "" {
		t.Errorf("its files are %v in %q, want what it left by then", a.res.Files, a.res.Folder)
	}
}

func TestRevocationStopsRunningScripts(t *testing.T) {
	filter := func(f catalog.Filter) func(*shop) {
		return func(s *shop) {
			if err := s.Catalog().SetFilter(f); err != nil {
				t.Error(err)
			}
		}
	}
	for _, tt := range []struct {
		name     string
		typed    bool
		withdraw func(*shop)
	}{
		{"the approval", false, func(s *shop) { s.grants.Revoke(t.Context(), "sleeper") }},
		{"the approval, for one of less", false, func(s *shop) { s.approve(t, "sleeper", func(g *policy.Grant) { g.Permissions.Run = false }) }},
		{"the approval, for one of other needs", false, func(s *shop) { s.approve(t, "sleeper", func(g *policy.Grant) { g.Needs = nil }) }},
		{"all skills", false, filter(catalog.Filter{Disabled: true})},
		{"it from the allowlist", false, filter(catalog.Filter{Allow: []string{"other", "bed"}})},
		{"what it needs from the allowlist", false, filter(catalog.Filter{Allow: []string{"sleeper"}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, sleeper(), nil)
			s.approve(t, "sleeper")
			ended(t, s, "sleeper", func() { tt.withdraw(s) })
			if res, err := s.try(t, loadout.Run{Skill: "sleeper", Script: "hi.sh"}); err == nil {
				t.Errorf("a new run is not refused: %+v", res)
			}
		})
	}
	t.Run("another skill continues", func(t *testing.T) {
		s := newShop(t, sleeper(), nil)
		s.approve(t, "sleeper")
		began := newSignal()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, loadout.Run{Skill: "sleeper", Script: "sleep.sh", Stdout: began, Principal: robot})
			done <- err
		}()
		<-began.c
		s.approve(t, "other")
		s.grants.Revoke(t.Context(), "other")
		filter(catalog.Filter{Allow: []string{"sleeper", "bed"}})(s)
		enough := errors.New("enough")
		cancel(enough)
		if err := <-done; !errors.Is(err, enough) {
			t.Errorf("got %v, want the end that the caller gave it", err)
		}
	})
	t.Run("while its sandbox is prepared", func(t *testing.T) {
		s := newShop(t, sleeper(), nil)
		s.approve(t, "sleeper")
		res, err := s.try(t, loadout.Run{Skill: "sleeper", Script: "hi.sh", Progress: func(string) { filter(catalog.Filter{Disabled: true})(s) }})
		refused(t, res, err, "disabled", "disabled", "enable it in the configuration")
		if recs, _ := s.audit.take(); !slices.ContainsFunc(recs, func(r policy.Record) bool { return r.Decision == policy.Deny }) {
			t.Errorf("recorded is %+v, without the refusal", recs)
		}
	})
}

func TestApprovalRequestListsPermissions(t *testing.T) {
	s := anyShop(t, files{
		"web/SKILL.md": "---\nname: web\ndescription: x\ndependencies: [base]\nsandbox: {network: [a.example, b.example], secrets: [KEY], seconds: 86400, memory_mb: 10, processes: 60000, colour: red}\n---\n",
		"web/get.sh":   "x", "base/SKILL.md": skillText("base", "x"),
	}, func(s *shop, o *loadout.Options) {
		o.Scripts.Bounds = policy.Bounds{Network: []string{"a.example"}, Secrets: []string{"*"}}
	})
	w, err := s.ReadApprovalRequest(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	d := prepare.DefaultLimits()
	if !slices.Equal(w.Requested.Network, []string{"a.example"}) || !slices.Equal(w.Requested.Secrets, []string{"KEY"}) || w.Requested.MemoryMB != 10 ||
		w.Requested.Seconds != int(d.Wall.Seconds()) || w.Requested.Processes > 2*d.Processes {
		t.Errorf("it asks for %+v", w.Requested)
	}
	if len(w.Problems) != 1 || len(w.Needs) != 1 || w.Needs[0].Name != "base" || len(w.Manifest) != 2 || string(w.Digest) != w.Manifest.Digest() {
		t.Errorf("got %+v", w)
	}
	if _, err := s.ReadApprovalRequest(t.Context(), "wob"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no skill: %v", err)
	}
}

// A load applies the permissions of its text only if that text is approved, even
// if an approved version without them becomes current during the load.
func TestLoadedTextIsTheApprovedOne(t *testing.T) {
	const plain = "---\nname: books\ndescription: Knows books.\n---\nRead.\n"
	replaced := &replacedFS{FS: fstest.MapFS{"books/SKILL.md": {Data: []byte(plain)}}, name: "books/SKILL.md"}
	grants := policy.NewMemoryStore()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, replaced)}, Scripts: &loadout.Scripts{Grants: grants}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	w, err := rt.ReadApprovalRequest(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grants.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always, Subject: w.Digest, Name: "books", Permissions: w.Requested.Permissions()}); err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	replaced.first = []byte("---\nname: books\ndescription: Knows books.\nallowed-tools: Bash(*)\nmodel: large\n---\nRead.\n")
	if _, err := s.Load(t.Context(), "books", nil); err != nil {
		t.Fatal(err)
	}
	a := s.Active()[0]
	if replaced.first != nil || a.Digest == "sha256:"+skillfile.Hash([]byte(plain)) {
		t.Fatalf("loaded %s, which was not replaced", a.Digest)
	}
	if len(a.AllowedTools) > 0 || a.Model != "" {
		t.Errorf("allowed tools %q, model %q", a.AllowedTools, a.Model)
	}
}

// replacedFS has a file that is replaced when its earlier content is read.
type replacedFS struct {
	fs.FS
	name  string
	first []byte // earlier content; nil after it was read
}

func (f *replacedFS) Open(name string) (fs.File, error) {
	if name != f.name || f.first == nil {
		return f.FS.Open(name)
	}
	file, err := fstest.MapFS{name: {Data: f.first}}.Open(name)
	return firstFile{file, f}, err
}

type firstFile struct {
	fs.File
	fsys *replacedFS
}

func (f firstFile) Read(b []byte) (int, error) {
	f.fsys.first = nil
	return f.File.Read(b)
}
