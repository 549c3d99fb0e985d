package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
)

// check returns the update of one skill.
func check(t *testing.T, p *install.Plan, name string) install.Update {
	t.Helper()
	updates, err := p.CheckUpdates(t.Context(), []string{name})
	if err != nil || len(updates) != 1 {
		t.Fatalf("updates are %v, %v", updates, err)
	}
	return updates[0]
}

func TestCheckUpdates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(r *repository, dir string)
		state  install.UpdateState
		reason string
		at     string // directory or tag of the location
		steps  int
	}{
		{"same commit", func(*repository, string) {}, install.Current, "", "", 0},
		{"other files", func(r *repository, _ string) { r.commit(map[string]string{"README.md": "text"}) }, install.Current, "", "", 0},
		{"newer", func(r *repository, _ string) { r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Two.")}) },
			install.Newer, "222222222222 → 333333333333", "", 1},
		{"edited", func(r *repository, dir string) {
			r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Two.")})
			write(r.T, dir, map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
		}, install.EditedHere, "your edits to SKILL.md are kept", "", 0},
		{"edited, with other files", func(r *repository, dir string) {
			r.commit(map[string]string{"README.md": "text"})
			write(r.T, dir, map[string]string{"pdf/SKILL.md": document("pdf", "Mine.")})
		}, install.Current, "", "", 0},
		{"gone", func(r *repository, _ string) {
			r.commit(map[string]string{"docx/SKILL.md": document("docx", "One.")})
			r.remove("pdf")
		}, install.Gone, "no longer at its source; your copy stays", "", 0},
		{"renamed", func(r *repository, _ string) { r.commit(map[string]string{"pdf/SKILL.md": document("docx", "One.")}) },
			install.Renamed, "it was renamed to docx", "pdf", 0},
		{"relocated", func(r *repository, _ string) {
			r.commit(map[string]string{"tools/pdf/SKILL.md": document("pdf", "One.")})
			r.remove("pdf")
		}, install.Relocated, "its directory no longer exists; its name is now used by tools/pdf", "tools/pdf", 0},
		{"unusable", func(r *repository, _ string) {
			r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "Two."), "pdf/SKILL.sig": "damaged"})
		}, install.Unusable, "damaged signature", "", 0},
		{"unreadable", func(r *repository, _ string) { r.err = errors.New("no route to host") }, install.Unreadable, "no route to host", "", 0},
		{"source gone", func(r *repository, _ string) { r.err = &remote.NotFoundError{What: "branch main"} }, install.Gone, "main", "", 0},
		{"private repository", func(r *repository, _ string) { r.err = &remote.NotFoundError{What: "repository"} }, install.Unreadable, "repository", "", 0},
		{"tag", func(r *repository, _ string) { r.revision.Ref = "refs/tags/v1.0.0" }, install.Current, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, to := newRepository(t), target(t)
			r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
			r.install(to, install.Options{})
			tt.change(r, to.Path())
			p := r.plan(to, install.Options{})
			u := check(t, p, "pdf")
			if u.State != tt.state || !strings.Contains(u.Reason, tt.reason) || tt.reason == "" && u.Reason != "" {
				t.Errorf("%s because of %q, want %s because of %q", u.State, u.Reason, tt.state, tt.reason)
			}
			if (u.Location != nil) != (tt.at != "") || u.Location != nil && u.Location.Dir != tt.at {
				t.Errorf("location is %v, want %q", u.Location, tt.at)
			}
			if n := len(p.Changes()); n != tt.steps || (p.Step("pdf") != nil) != (tt.steps > 0) {
				t.Errorf("%d changes, want %d", n, tt.steps)
			}
			if failed := u.State == install.Unusable || u.State == install.Unreadable; failed && u.Err == nil {
				t.Error("no error")
			}
		})
	}
}

func (r *repository) remove(dir string) {
	r.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, dir)); err != nil {
		r.Fatal(err)
	}
}

func TestPinnedSkills(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.location.Ref, r.revision.Ref = "v1.0.0", "refs/tags/v1.0.0"
	r.revision.Tags = map[string]string{"v1.0.0": r.revision.Commit}
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
	r.install(to, install.Options{})
	if u := check(t, r.plan(to, install.Options{}), "pdf"); u.State != install.PinnedTo || u.Reason != "to v1.0.0" || u.Location != nil {
		t.Errorf("no newer tag: %+v", u)
	}
	r.revision.Tags["v1.2.0"] = strings.Repeat("9", 40)
	if u := check(t, r.plan(to, install.Options{}), "pdf"); u.Reason != "to v1.0.0; available: v1.2.0" || u.Location == nil || u.Location.Ref != "v1.2.0" {
		t.Errorf("newer tag: %+v", u)
	}

	r, to = newRepository(t), target(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One.")})
	r.location.Ref, r.revision.Ref = r.revision.Commit, ""
	r.install(to, install.Options{})
	if u := check(t, r.plan(to, install.Options{}), "pdf"); u.State != install.PinnedTo || u.Reason != "to a commit" {
		t.Errorf("commit: %+v", u)
	}
}

func TestAvailableUpdates(t *testing.T) {
	r, to := newRepository(t), target(t)
	r.commit(map[string]string{"pdf/SKILL.md": document("pdf", "One."), "docx/SKILL.md": document("docx", "One.")})
	r.install(to, install.Options{})
	file := install.OpenAvailableUpdates(filepath.Join(t.TempDir(), "newer.json"))
	if got := file.List(); got != nil {
		t.Errorf("without a file: %v", got)
	}
	save := func(updates ...install.Update) {
		t.Helper()
		if err := file.Save(t.Context(), to, updates); err != nil {
			t.Fatal(err)
		}
	}
	names := func() string {
		var out []string
		for _, u := range file.List() {
			out = append(out, u.Name+" "+u.Reason)
		}
		return strings.Join(out, ", ")
	}
	save(install.Update{Name: "pdf", State: install.Newer, Reason: "one"}, install.Update{Name: "docx", State: install.EditedHere, Reason: "two"})
	if got := names(); got != "pdf one, docx two" {
		t.Errorf("saved are %q", got)
	}
	save(install.Update{Name: "pdf", State: install.Current})
	if got := names(); got != "docx two" {
		t.Errorf("after another check: %q", got)
	}
	r.commit(map[string]string{"docx/SKILL.md": document("docx", "Two.")})
	r.install(to, install.Options{})
	if got := names(); got != "" {
		t.Errorf("after an installation: %q", got)
	}
}
