package install_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
)

// today is the time of the tests: the same version has the same signature.
var today = time.Now().UTC().Truncate(time.Second)

// version returns a release signed some days before today.
func version(counter uint64, days int) signature.Release {
	return signature.Release{Counter: counter, Time: today.AddDate(0, 0, -days)}
}

// user returns the options of a user with a state directory.
func user(t *testing.T) install.Options {
	t.Helper()
	state := t.TempDir()
	return install.Options{Pins: &signature.Pins{Path: filepath.Join(state, "publishers.json")},
		History: &signature.History{Path: filepath.Join(state, "versions.json")}}
}

// update updates all skills of a directory and returns the states by name.
func (r *repository) update(to *installed.Dir, o install.Options) map[string]install.Update {
	r.Helper()
	p := r.plan(to, o)
	lock, err := to.Lockfile()
	if err != nil {
		r.Fatal(err)
	}
	updates, err := p.CheckUpdates(r.Context(), lock.Names())
	if err != nil {
		r.Fatal(err)
	}
	if err := p.Apply(r.Context()); err != nil {
		r.Fatal(err)
	}
	out := map[string]install.Update{}
	for _, u := range updates {
		out[u.Name] = u
	}
	return out
}

// frozen installs what the lockfile says.
func (r *repository) frozen(to *installed.Dir, o install.Options) error {
	r.Helper()
	p := r.plan(to, o)
	if err := p.AddLocked(r.Context()); err != nil {
		return err
	}
	return p.Apply(r.Context())
}

func reasonOf(err error) install.Reason {
	if e, ok := errors.AsType[*install.SkillError](err); ok {
		return e.Reason
	}
	return -1
}

// body returns the body of an installed skill.
func body(t *testing.T, d *installed.Dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.Path(), name, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "---\n")
	_, text, _ = strings.Cut(text, "---\n")
	return strings.TrimSpace(text)
}

func entryOf(t *testing.T, d *installed.Dir, name string) installed.Entry {
	t.Helper()
	lock, err := d.Lockfile()
	if err != nil {
		t.Fatal(err)
	}
	return lock.Skills[name]
}

// An older version with its own valid signature is refused, also after the
// skill or the lockfile was removed, unless the user accepts it.
func TestReplayIsRefused(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.release("pdf", "One.", key, version(1, 30))
	r.install(to, o)
	r.release("pdf", "Two.", key, version(2, 20))
	r.update(to, o)
	if e := entryOf(t, to, "pdf"); e.Counter != 2 || e.HighestCounter != 2 || !e.Signed.Equal(version(2, 20).Time) {
		t.Fatalf("entry is %+v", e)
	}

	r.release("pdf", "One.", key, version(1, 30))
	u := r.update(to, o)["pdf"]
	if reasonOf(u.Err) != install.Downgrade || body(t, to, "pdf") != "Two." {
		t.Fatalf("after a replay: %+v, body %q", u, body(t, to, "pdf"))
	}
	if !strings.Contains(u.Reason, "counter 1") || !strings.Contains(u.Reason, "counter 2") {
		t.Errorf("the reason is %q", u.Reason)
	}
	withoutHistory := o
	withoutHistory.History = nil
	if u := r.update(to, withoutHistory)["pdf"]; reasonOf(u.Err) != install.Downgrade {
		t.Errorf("with the lockfile alone: %+v", u)
	}
	for _, options := range []install.Options{o, {Pins: o.Pins, History: o.History, Force: true}} {
		if p := r.add(to, options); len(p.Failures) != 1 || reasonOf(p.Failures[0].Err) != install.Downgrade {
			t.Errorf("add: %+v", p.Failures)
		}
	}

	if err := os.RemoveAll(to.Path()); err != nil {
		t.Fatal(err)
	}
	if p := r.add(to, o); len(p.Failures) != 1 || reasonOf(p.Failures[0].Err) != install.Downgrade {
		t.Errorf("add after the lockfile was removed: %+v", p.Failures)
	}
	o.Downgrade = true
	r.install(to, o)
	if e := entryOf(t, to, "pdf"); e.Counter != 1 || e.HighestCounter != 2 || body(t, to, "pdf") != "One." {
		t.Errorf("accepted: %+v", e)
	}
	o.Downgrade = false
	if u := r.update(to, o)["pdf"]; u.State != install.Current {
		t.Errorf("the accepted version: %+v", u)
	}
	r.release("pdf", "Three.", key, version(3, 10))
	if u := r.update(to, o)["pdf"]; u.Err != nil || body(t, to, "pdf") != "Three." {
		t.Errorf("after the downgrade: %+v", u)
	}
}

// A signature without a counter is valid, but not after one with a counter.
func TestSignaturesWithoutHistory(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.sign("pdf", "One.", key)
	r.install(to, o)
	r.sign("pdf", "Two.", key)
	r.update(to, o)
	r.sign("pdf", "One.", key)
	if u := r.update(to, o)["pdf"]; u.Err != nil || body(t, to, "pdf") != "One." {
		t.Errorf("without history: %+v", u)
	}
	lock, err := to.Lockfile()
	if err != nil {
		t.Fatal(err)
	}
	if w := install.Warnings(lock, o.Pins); len(w) != 1 || w[0].StopsUpdates || !strings.HasPrefix(w[0].Text, "no history") {
		t.Errorf("warnings are %+v", w)
	}
	r.release("pdf", "Three.", key, version(1, 5))
	if u := r.update(to, o)["pdf"]; u.Err != nil || body(t, to, "pdf") != "Three." {
		t.Errorf("the first version with a counter: %+v", u)
	}
	r.sign("pdf", "Two.", key)
	if u := r.update(to, o)["pdf"]; reasonOf(u.Err) != install.Downgrade || !strings.Contains(u.Reason, "no counter") {
		t.Errorf("without history after a counter: %+v", u)
	}
}

// A source that offers some skills in new versions and others in old ones
// updates the former only. Of two versions with the same counter, the installed
// one stays.
func TestMixedHeads(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.release("pdf", "One.", key, version(1, 30))
	r.release("tides", "One.", key, version(1, 30))
	r.install(to, o)
	r.release("pdf", "Two.", key, version(2, 20))
	r.update(to, o)

	r.release("pdf", "One.", key, version(1, 30))
	r.release("tides", "Two.", key, version(2, 20))
	got := r.update(to, o)
	if reasonOf(got["pdf"].Err) != install.Downgrade || got["tides"].Err != nil {
		t.Errorf("mixed: %+v", got)
	}
	if body(t, to, "pdf") != "Two." || body(t, to, "tides") != "Two." {
		t.Errorf("pdf %q, tides %q", body(t, to, "pdf"), body(t, to, "tides"))
	}

	r.release("pdf", "Another two.", key, version(2, 20))
	u := r.update(to, o)["pdf"]
	if reasonOf(u.Err) != install.Downgrade || !strings.Contains(u.Reason, "same counter 2") {
		t.Errorf("another head with the same counter: %+v", u)
	}
}

// Who restores an old lockfile, with or without the files, is refused on a
// machine that has seen a newer version for it.
func TestDowngradeThroughLock(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.release("pdf", "One.", key, version(1, 30))
	r.install(to, o)
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(to.Path())); err != nil {
		t.Fatal(err)
	}
	r.release("pdf", "Two.", key, version(2, 20))
	r.update(to, o)
	restore := func(files bool) {
		t.Helper()
		if err := os.RemoveAll(to.Path()); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to.Path(), os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
		if !files {
			if err := os.RemoveAll(filepath.Join(to.Path(), "pdf")); err != nil {
				t.Fatal(err)
			}
		}
	}

	r.release("pdf", "One.", key, version(1, 30)) // the source is as old as the lockfile
	for _, files := range []bool{true, false} {
		restore(files)
		if err := r.frozen(to, o); reasonOf(err) != install.Downgrade {
			t.Errorf("with the files %v: %v", files, err)
		}
	}
	if u := r.update(to, o)["pdf"]; u.State == install.Newer && u.Err == nil {
		t.Errorf("update to the old version: %+v", u)
	}
	accept := o
	accept.Downgrade = true
	if err := r.frozen(to, accept); err != nil {
		t.Fatalf("accepted: %v", err)
	}
	if err := r.frozen(to, o); err != nil {
		t.Errorf("after it was accepted: %v", err)
	}

	// Another lockfile on this machine may stay at the old version, and a machine
	// that has seen nothing installs what the lockfile says.
	project := installed.Open(filepath.Join(t.TempDir(), "skills"))
	if err := os.CopyFS(project.Path(), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	for _, options := range []install.Options{o, user(t)} {
		if err := r.frozen(project, options); err != nil || body(t, project, "pdf") != "One." {
			t.Errorf("another lockfile: %v", err)
		}
	}
}

// A lockfile cannot claim another counter than the signature has.
func TestForgedCounterInLock(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.release("pdf", "One.", key, version(1, 30))
	r.install(to, o)
	path := filepath.Join(to.Path(), installed.LockfileName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`"counter": 1`, `"counter": 9`, `"highestCounter": 1`, `"highestCounter": 9`).Replace(string(good))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.frozen(to, o); reasonOf(err) != install.CounterMismatch {
		t.Errorf("installed files: %v", err)
	}
	if err := install.VerifySignature(filepath.Join(to.Path(), "pdf"), entryOf(t, to, "pdf"), nil); err == nil || !strings.Contains(err.Error(), "counter mismatch") {
		t.Errorf("verify: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(to.Path(), "pdf")); err != nil {
		t.Fatal(err)
	}
	if err := r.frozen(to, o); reasonOf(err) != install.CounterMismatch {
		t.Errorf("missing files: %v", err)
	}
}

// A version signed after today is refused: the clock of this machine is behind,
// or that of the publisher was ahead. The installed version stays.
func TestClockBehind(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	r.release("pdf", "One.", key, version(1, -400)) // the clock was set back after it was installed
	if p := r.add(to, o); len(p.Failures) != 1 || reasonOf(p.Failures[0].Err) != install.WrongClock {
		t.Fatalf("add: %+v", p.Failures)
	}
	r.release("pdf", "Two.", key, version(2, 10))
	r.install(to, o)
	r.release("pdf", "Three.", key, version(3, -400))
	u := r.update(to, o)["pdf"]
	if reasonOf(u.Err) != install.WrongClock || body(t, to, "pdf") != "Two." {
		t.Errorf("update: %+v", u)
	}
	if err := r.frozen(to, o); err != nil {
		t.Errorf("the installed version: %v", err)
	}
}

// Anyone may have pushed a commit: its counter says nothing about the source.
func TestCommitOfForkRecordsNoCounter(t *testing.T) {
	r, to, o := newRepository(t), target(t), user(t)
	branch := r.revision
	r.release("pdf", "Fork.", newKey(t), version(signature.MaxCounter, 20))
	r.location.Ref, r.revision.Ref = r.revision.Commit, ""
	r.install(to, o)
	if err := os.RemoveAll(to.Path()); err != nil {
		t.Fatal(err)
	}
	r.location.Ref, r.revision.Ref = "", branch.Ref
	r.release("pdf", "One.", newKey(t), version(1, 10))
	r.install(to, o)
	if got := body(t, to, "pdf"); got != "One." {
		t.Errorf("installed %q", got)
	}
}

func TestForgottenCounters(t *testing.T) {
	h := signature.History{Path: filepath.Join(t.TempDir(), "versions.json")}
	if err := h.Forget(t.Context(), "https://a.example"); err != nil {
		t.Error(err)
	}
	a := signature.Seen{Scope: "/one", Source: "https://a.example", Name: "pdf", Counter: 5}
	elsewhere, b := a, a
	elsewhere.Scope, b.Source = "/two", "https://b.example"
	if err := h.Record(t.Context(), a, elsewhere, b); err != nil {
		t.Fatal(err)
	}
	if err := h.Forget(t.Context(), "https://a.example"); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[signature.Seen]uint64{a: 0, elsewhere: 0, b: 5} {
		if got, err := h.Find(s.Scope, s.Source, s.Name); err != nil || got.Counter != want {
			t.Errorf("%s in %s has counter %d, %v; want %d", s.Source, s.Scope, got.Counter, err, want)
		}
	}
}

func TestRecordedVersionsStay(t *testing.T) {
	h := signature.History{Path: filepath.Join(t.TempDir(), "state", "versions.json")}
	find := func() signature.Seen {
		t.Helper()
		s, err := h.Find("/scope", "https://example.com/repo", "pdf")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := find(); got != (signature.Seen{}) {
		t.Errorf("of nothing: %+v", got)
	}
	pdf := signature.Seen{Scope: "/scope", Source: "https://example.com/repo", Name: "pdf", Counter: 5, Digest: "sha256:5"}
	other := pdf
	other.Scope, other.Counter = "/other", 1
	older := pdf
	older.Counter, older.Digest = 3, "sha256:3"
	if err := h.Record(t.Context(), pdf, other, older); err != nil {
		t.Fatal(err)
	}
	want := pdf
	want.Accepted = "sha256:3"
	if diff := cmp.Diff(want, find()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	newer := pdf
	newer.Counter, newer.Digest = 6, "sha256:6"
	if err := h.Record(t.Context(), newer); err != nil || find() != newer {
		t.Errorf("newer: %+v, %v", find(), err)
	}
	if err := h.Record(t.Context(), signature.Seen{Scope: "/scope"}); err == nil {
		t.Error("an incomplete version is recorded")
	}

	for _, text := range []string{`{"version":2,"skills":[]}`, `{`, `{"version":1,"skills":[{"scope":"/scope"}]}`} {
		if err := os.WriteFile(h.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Find("/scope", "x", "pdf"); err == nil || !strings.Contains(err.Error(), h.Path) {
			t.Errorf("%s: %v", text, err)
		}
		if err := h.Record(context.Background(), pdf); err == nil {
			t.Errorf("%s is overwritten", text)
		}
	}
}

// The user chooses a version by naming a tag or a commit, or by accepting a
// downgrade. A lockfile chooses none, whatever it says.
func TestChosenVersions(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	want := func(what string, p *install.Plan, want ...string) {
		t.Helper()
		if got := p.ChosenVersions(); !slices.Equal(got, want) {
			t.Errorf("%s chooses %v, want %v", what, got, want)
		}
	}
	planned := func() *install.Plan {
		t.Helper()
		p := r.plan(to, o)
		if _, err := p.CheckUpdates(t.Context(), []string{"pdf"}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	r.release("pdf", "One.", key, version(1, 30))
	want("an installation without a version", r.add(to, o))
	r.install(to, o)
	one := entryOf(t, to, "pdf").Digest
	r.release("pdf", "Two.", key, version(2, 20))
	want("an update", planned())
	r.update(to, o)
	r.release("pdf", "One.", key, version(1, 30))
	o.Downgrade = true
	want("an accepted downgrade", r.add(to, o), one)
	r.install(to, o)
	o.Downgrade = false
	want("the same version again", r.add(to, o))
	r.location.Ref, r.revision.Ref = "v1", "refs/tags/v1"
	tagged := target(t)
	want("a tag", r.add(tagged, o), one)
	r.install(tagged, o)
	for _, to := range []*installed.Dir{to, tagged} {
		for _, o.Downgrade = range []bool{false, true} {
			p := r.plan(to, o)
			if err := p.AddLocked(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("a lockfile", p)
		}
	}
}

// The https and ssh addresses of a repository, in any letter case, are one
// source: it has one key and one history.
func TestAddressesOfOneSource(t *testing.T) {
	r, to, o, key := newRepository(t), target(t), user(t), newKey(t)
	o.Pins.Identity = remote.Identity
	r.release("pdf", "Two.", key, version(2, 20))
	r.install(to, o)
	for i, url := range []string{"git@example.com:repo.git", "ssh://git@example.com:2222/Repo", "https://EXAMPLE.com/REPO.git"} {
		r.location.URL = url
		other := target(t)
		r.release("pdf", "Evil.", newKey(t), version(3, 10))
		p := r.add(other, o)
		if len(p.Failures) != 1 {
			t.Fatalf("%s: another key is accepted", url)
		}
		if _, ok := errors.AsType[*signature.ChangedKeyError](p.Failures[0].Err); !ok {
			t.Errorf("%s: %v", url, p.Failures[0].Err)
		}
		r.release("pdf", "One.", key, version(1, 30))
		if p := r.add(to, o); len(p.Failures) != 1 || reasonOf(p.Failures[0].Err) != install.Downgrade {
			t.Errorf("%s: an older version: %+v", url, p.Failures)
		}
		r.release("pdf", "Newer.", key, version(uint64(3+i), 9-i))
		r.install(to, o)
	}
}
