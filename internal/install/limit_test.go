//go:build unix

package install_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// attempt adds, updates or restores all skills and returns the first error of the
// plan, of a skill or of a source.
func (r *repository) attempt(ctx context.Context, to *installed.Dir, o install.Options, add func(*install.Plan) error) error {
	o.Source = r
	p, err := install.New(to, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := add(p); err != nil {
		return err
	}
	for _, f := range p.Failures {
		return f.Err
	}
	return p.Apply(ctx)
}

// Whichever step fails, an installation, an update and a restoration fail as a
// whole: without files left, and with the same result when they succeed later.
func TestStepsThatFail(t *testing.T) {
	for name, each := range map[string]func(t *testing.T, f func(context.Context) error){
		"cancelled": func(t *testing.T, f func(context.Context) error) { limittest.CancelAtEach(t, f) },
		"too many open files": func(t *testing.T, f func(context.Context) error) {
			limittest.EachOpen(t, func() error { return f(t.Context()) }, func(error) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, to, o := newRepository(t), target(t), user(t)
			key := newKey(t)
			r.commit(map[string]string{"pdf/run.py": "print(1)\n"})
			for _, name := range []string{"pdf", "docx", "xlsx"} {
				r.sign(name, "One.", key)
			}
			check := func(text string) {
				t.Helper()
				for _, name := range []string{"pdf", "docx", "xlsx"} {
					if got := body(t, to, name); got != text {
						t.Errorf("%s has the text %q, want %q", name, got, text)
					}
				}
				if all, err := os.ReadDir(to.Path()); err != nil || len(all) != 4 { // with the lockfile
					t.Errorf("the directory has %v, %v", all, err)
				}
			}
			each(t, func(ctx context.Context) error {
				return r.attempt(ctx, to, o, func(p *install.Plan) error {
					c, err := p.Open(ctx, r.location)
					if err == nil && len(c.Skills) != 3 {
						err = errors.New("skills are missing")
					}
					if err != nil {
						return err
					}
					return p.Add(ctx, c, c.Skills)
				})
			})
			check("One.")
			r.sign("pdf", "Two.", key)
			r.sign("docx", "Two.", key)
			each(t, func(ctx context.Context) error {
				return r.attempt(ctx, to, o, func(p *install.Plan) error {
					updates, err := p.CheckUpdates(ctx, []string{"pdf", "docx"})
					for _, u := range updates {
						err = errors.Join(err, u.Err)
					}
					return err
				})
			})
			if got := body(t, to, "pdf") + body(t, to, "docx"); got != "Two.Two." {
				t.Errorf("updated to %q", got)
			}
			if err := os.RemoveAll(filepath.Join(to.Path(), "docx")); err != nil {
				t.Fatal(err)
			}
			each(t, func(ctx context.Context) error {
				return r.attempt(ctx, to, o, func(p *install.Plan) error { return p.AddLocked(ctx) })
			})
			if got := body(t, to, "docx"); got != "Two." {
				t.Errorf("restored %q", got)
			}
		})
	}
}
