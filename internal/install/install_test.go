package install_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// repository is a source with the revisions of a Git repository, whose files
// are a directory.
type repository struct {
	*testing.T
	dir      string
	location remote.Location
	revision remote.Revision
	err      error // of every operation
	opened   int
}

func newRepository(t *testing.T) *repository {
	return &repository{T: t, dir: t.TempDir(), location: remote.Location{Kind: remote.Git, URL: "https://example.com/repo.git"},
		revision: remote.Revision{Ref: "refs/heads/main", Commit: strings.Repeat("1", 40)}}
}

func (r *repository) Open(ctx context.Context, at remote.Location) (*remote.Collection, error) {
	if r.opened++; r.err != nil {
		return nil, r.err
	}
	c, err := remote.New(nil).Open(ctx, remote.Location{Kind: remote.Local, URL: r.dir})
	if err == nil {
		c.Location, c.Revision = at, r.revision
	}
	return c, err
}

func (r *repository) Latest(context.Context, remote.Location) (*remote.Revision, error) {
	rev := r.revision
	return &rev, r.err
}

// commit writes files and changes the commit.
func (r *repository) commit(files map[string]string) {
	r.Helper()
	write(r.T, r.dir, files)
	first := r.revision.Commit[0] + 1
	r.revision.Commit = strings.Repeat(string(first), 40)
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func document(name, body string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " does.\n---\n" + body + "\n"
}

// plan returns a plan for a directory, closed at the end of the test.
func (r *repository) plan(to *installed.Dir, o install.Options) *install.Plan {
	r.Helper()
	o.Source = r
	p, err := install.New(to, o)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(p.Close)
	return p
}

// add adds the named skills, or all, to a new plan.
func (r *repository) add(to *installed.Dir, o install.Options, names ...string) *install.Plan {
	r.Helper()
	p := r.plan(to, o)
	c, err := p.Open(r.Context(), r.location)
	if err != nil {
		r.Fatal(err)
	}
	chosen := c.Skills
	if len(names) > 0 {
		chosen = nil
		for _, n := range names {
			chosen = append(chosen, install.Match(c, n)...)
		}
	}
	if err := p.Add(r.Context(), c, chosen); err != nil {
		r.Fatal(err)
	}
	return p
}

// install installs the named skills, or all.
func (r *repository) install(to *installed.Dir, o install.Options, names ...string) {
	r.Helper()
	p := r.add(to, o, names...)
	if len(p.Failures) > 0 {
		r.Fatal(p.Failures[0].Err)
	}
	if err := p.Apply(r.Context()); err != nil {
		r.Fatal(err)
	}
}

func states(p *install.Plan) map[string]string {
	out := map[string]string{}
	for _, st := range p.Steps {
		out[st.Name] = st.State
	}
	return out
}

// reason returns the reason of the only failure of a plan.
func reason(t *testing.T, p *install.Plan) install.Reason {
	t.Helper()
	if len(p.Failures) != 1 {
		t.Fatalf("%d failures, want 1: %v", len(p.Failures), p.Failures)
	}
	e, ok := errors.AsType[*install.SkillError](p.Failures[0].Err)
	if !ok {
		t.Fatalf("failure is %T: %v", p.Failures[0].Err, p.Failures[0].Err)
	}
	return e.Reason
}

func target(t *testing.T) *installed.Dir {
	return installed.Open(filepath.Join(t.TempDir(), "skills"))
}

func TestInstallAndReplace(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One."), "pdf/run.py": "print(1)\n", "docx/SKILL.md": document("docx", "One.")})
	p := r.add(to, install.Options{})
	if diff := cmp.Diff(map[string]string{"pdf": install.StateNew, "docx": install.StateNew}, states(p)); diff != "" {
		t.Error(diff)
	}
	for _, st := range p.Steps {
		if st.Name == "pdf" && (st.Files != 2 || !cmp.Equal(st.Scripts, []string{"run.py"}) || st.From.Dir != "pdf" || st.Report == nil || st.Diff != nil) {
			t.Errorf("pdf is %+v", st.Skill)
		}
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, err := to.Lockfile()
	if err != nil || !cmp.Equal(lock.Names(), []string{"docx", "pdf"}) || lock.Skills["pdf"].Commit != r.revision.Commit {
		t.Errorf("lockfile is %v, %v", lock, err)
	}
	if n := len(r.add(to, install.Options{}).Changes()); n != 0 {
		t.Errorf("installing the same again changes %d skills", n)
	}

	r.commit(map[string]string{"pdf/run.py": "print(2)\n"})
	p = r.add(to, install.Options{})
	if diff := cmp.Diff(map[string]string{"pdf": install.StateReplaced, "docx": install.StateUnchanged}, states(p)); diff != "" {
		t.Error(diff)
	}
	if changes := p.Changes(); len(changes) != 1 || changes[0].Diff == nil || len(changes[0].Diff.Files) != 1 {
		t.Errorf("changes are %+v", changes)
	}
}

// What the user has is not replaced, except by force.
func TestRefusals(t *testing.T) {
	r := newRepository(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
	for _, tt := range []struct {
		name    string
		arrange func(to *installed.Dir)
		want    install.Reason
	}{
		{"not installed by this program", func(to *installed.Dir) {
			write(t, to.Path(), map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
		}, install.NotInstalled},
		{"other source", func(to *installed.Dir) {
			other := newRepository(t)
			other.location.URL = "https://example.com/other.git"
			other.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Other.")})
			other.install(to, install.Options{})
		}, install.OtherSource},
		{"pinned", func(to *installed.Dir) {
			pinned := *r
			pinned.location.Ref = "v1"
			pinned.install(to, install.Options{})
			write(t, to.Path(), map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
		}, install.Pinned},
		{"edited", func(to *installed.Dir) {
			r.install(to, install.Options{})
			write(t, to.Path(), map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
		}, install.Edited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := target(t)
			tt.arrange(to)
			if got := reason(t, r.add(to, install.Options{})); got != tt.want {
				t.Errorf("reason is %v, want %v", got, tt.want)
			}
			r.install(to, install.Options{Force: true})
			text, err := os.ReadFile(filepath.Join(to.Path(), "pdf", "SKILL.md"))
			if err != nil || !strings.Contains(string(text), "One.") {
				t.Errorf("after --force it is %q, %v", text, err)
			}
		})
	}
}

func TestMovedTag(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.location.Ref, r.revision.Ref = "v1.0.0", "refs/tags/v1.0.0"
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
	r.install(to, install.Options{})
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Two.")})
	if got := reason(t, r.add(to, install.Options{})); got != install.TagMoved {
		t.Errorf("reason is %v, want %v", got, install.TagMoved)
	}
	u := check(t, r.plan(to, install.Options{}), "pdf")
	if u.State != install.Moved || u.Location == nil || u.Location.Ref != "v1.0.0" {
		t.Errorf("update is %+v", u)
	}
}

func TestPlanNames(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.commit(map[string]string{"a/pdf/SKILL.md": document("pdf", "One."), "b/pdf/SKILL.md": document("pdf", "Two."), "c/pdf/SKILL.md": document("pdf", "One."),
		"bad/SKILL.md": "no frontmatter\n"})
	p := r.add(to, install.Options{}, "a/pdf", "b/pdf", "c/pdf")
	if got := reason(t, p); got != install.NameTaken || len(p.Steps) != 1 || len(p.Failures) != 1 || p.Failures[0].Dir != "b/pdf" {
		t.Errorf("reason is %v, with %d steps and failures %+v", got, len(p.Steps), p.Failures)
	}
	c, err := p.Open(t.Context(), r.location)
	if err != nil {
		t.Fatal(err)
	}
	if dir, message, ok := install.FindProblem(c, "bad"); !ok || dir == "" || message == "" {
		t.Errorf("problem of bad is %q, %q, %v", dir, message, ok)
	}
	if _, _, ok := install.FindProblem(c, "pdf"); ok {
		t.Error("pdf has a problem")
	}
	p.AddUnusable(c)
	if n := len(p.Failures); n != 2 || !p.Failures[1].Listed {
		t.Errorf("failures are %+v", p.Failures)
	}
	if got := install.NearestName("pfd", c.Skills); got != "pdf" {
		t.Errorf("nearest to pfd is %q", got)
	}
	if got := install.NearestName("spreadsheet", c.Skills); got != "" {
		t.Errorf("nearest to spreadsheet is %q", got)
	}
}

func TestName(t *testing.T) {
	git := remote.Location{Kind: remote.Git}
	for _, tt := range []struct {
		at   remote.Location
		s    remote.Skill
		want string
	}{
		{git, remote.Skill{Name: "pdf", Dir: "skills/other"}, "pdf"},
		{git, remote.Skill{Name: "PDF Tools", Dir: "skills/pdf"}, "pdf"},
		{git, remote.Skill{Name: "PDF Tools", Dir: "skills/P D F"}, "pdf-tools"},
		{git, remote.Skill{Name: "con", Dir: "skills/aux"}, "skill-"},
		{remote.Location{Kind: remote.Local, URL: "/home/me/pdf"}, remote.Skill{Name: "P/F", Dir: "."}, "pdf"},
	} {
		if got := install.Name(tt.at, tt.s); got != tt.want && (tt.want != "skill-" || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("Name(%v) = %q, want %q", tt.s, got, tt.want)
		}
	}
}

// Another process changes a skill between the plan and its execution.
func TestConcurrentChange(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
	p := r.add(to, install.Options{})
	r.install(to, install.Options{})
	e, ok := errors.AsType[*install.SkillError](p.Apply(t.Context()))
	if !ok || e.Reason != install.Busy {
		t.Errorf("error is %v", e)
	}
}

func TestAddLocked(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One."), "docx/SKILL.md": document("docx", "One.")})
	r.install(to, install.Options{})
	locked := func(o install.Options) (*install.Plan, error) {
		p := r.plan(to, o)
		return p, p.AddLocked(t.Context())
	}
	r.opened = 0
	if p, err := locked(install.Options{}); err != nil || len(p.Changes()) != 0 || len(p.Steps) != 2 || r.opened != 0 {
		t.Errorf("unchanged: %v, steps %v, opened %d times", err, states(p), r.opened)
	}
	if err := os.RemoveAll(filepath.Join(to.Path(), "pdf")); err != nil {
		t.Fatal(err)
	}
	write(t, to.Path(), map[string]string{"docx/SKILL.md": document("docx", "Mine.")})
	if _, err := locked(install.Options{}); !hasReason(err, install.LockMismatch) {
		t.Errorf("edited: %v", err)
	}
	r.opened = 0
	p, err := locked(install.Options{Force: true})
	if err != nil || len(p.Changes()) != 2 || r.opened != 1 {
		t.Fatalf("by force: %v, steps %v, opened %d times", err, states(p), r.opened)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(to.Path(), "pdf")); err != nil {
		t.Fatal(err)
	}
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Two.")})
	if _, err := locked(install.Options{}); !hasReason(err, install.DigestMismatch) {
		t.Errorf("another content: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "pdf")); err != nil {
		t.Fatal(err)
	}
	if _, err := locked(install.Options{}); !hasReason(err, install.Missing) {
		t.Errorf("gone: %v", err)
	}
}

func hasReason(err error, want install.Reason) bool {
	e, ok := errors.AsType[*install.SkillError](err)
	return ok && e.Reason == want
}

func TestPublishers(t *testing.T) {
	r, to := newRepository(t), target(t)
	pins := &signature.Pins{Path: filepath.Join(t.TempDir(), "publishers.json")}
	one, two := newKey(t), newKey(t)
	r.sign("pdf", "One.", one)
	if err := r.add(to, install.Options{}).Apply(t.Context()); !errors.Is(err, install.ErrNoPins) {
		t.Errorf("without pins: %v", err)
	}
	p := r.add(to, install.Options{Pins: pins})
	if by := p.Steps[0].Publisher; by == nil || !by.First || by.Name != "example.com" || p.Steps[0].Signer != by.Fingerprint {
		t.Errorf("publisher is %+v", by)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, _ := to.Lockfile()
	e := lock.Skills["pdf"]
	if err := install.VerifySignature(filepath.Join(to.Path(), "pdf"), e, pins); err != nil {
		t.Errorf("verify: %v", err)
	}
	r.sign("pdf", "Two.", one)
	if p = r.add(to, install.Options{Pins: pins}); len(p.Failures) > 0 || p.Steps[0].Publisher.First {
		t.Errorf("the same key: %+v", p.Failures)
	}
	changed := func(what string) {
		t.Helper()
		p := r.add(to, install.Options{Pins: pins, Force: true})
		if len(p.Failures) != 1 {
			t.Fatalf("%s: %d failures", what, len(p.Failures))
		}
		if _, ok := errors.AsType[*signature.ChangedKeyError](p.Failures[0].Err); !ok {
			t.Errorf("%s: %v", what, p.Failures[0].Err)
		}
	}
	r.sign("pdf", "Three.", two)
	changed("another key")
	if err := os.Remove(filepath.Join(r.dir, "pdf", signature.FileName)); err != nil {
		t.Fatal(err)
	}
	changed("no signature")

	// Whoever changes the lockfile cannot change the pinned key.
	if _, err := pins.Set(t.Context(), e.From.CanonicalURL(), publicOf(t, two)); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*signature.ChangedKeyError](install.VerifySignature(filepath.Join(to.Path(), "pdf"), e, pins)); !ok {
		t.Error("a key that differs from the pinned one is accepted")
	}
	if err := install.VerifySignature(filepath.Join(to.Path(), "pdf"), e, nil); err != nil {
		t.Errorf("without pins: %v", err)
	}
	write(t, to.Path(), map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
	if err := install.VerifySignature(filepath.Join(to.Path(), "pdf"), e, nil); err == nil {
		t.Error("changed files match the signature")
	}
}

// A skill by commit pins no key: hosts also serve commits of forks.
func TestCommitKey(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.sign("pdf", "One.", newKey(t))
	r.revision.Ref, r.location.Ref = "", r.revision.Commit
	p := r.add(to, install.Options{})
	if by := p.Steps[0].Publisher; by == nil || by.First {
		t.Errorf("publisher is %+v", by)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Error(err)
	}
}

func newKey(t *testing.T) string {
	t.Helper()
	private, _, err := signature.GenerateKey("example.com")
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func publicOf(t *testing.T, private string) string {
	t.Helper()
	public, err := signature.PublicKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// sign commits a skill that is signed by a key, without history.
func (r *repository) sign(name, body, private string) {
	r.Helper()
	r.release(name, body, private, signature.Release{})
}

// release commits a version of a skill that is signed by a key.
func (r *repository) release(name, body, private string, version signature.Release) {
	r.Helper()
	r.publish(name, body, signature.PrivateKey{Private: private}, version)
}

// publish commits a version of a skill with what its publisher states about the
// key.
func (r *repository) publish(name, body string, key signature.PrivateKey, version signature.Release) {
	r.Helper()
	r.commit(map[string]string{name + "/SKILL.md": document(name, body)})
	m, _, err := skill.ReadManifest(os.DirFS(filepath.Join(r.dir, name)))
	if err != nil {
		r.Fatal(err)
	}
	sig, err := key.Sign(m, name, version)
	if err != nil {
		r.Fatal(err)
	}
	write(r.T, r.dir, map[string]string{name + "/" + signature.FileName: string(sig)})
}
