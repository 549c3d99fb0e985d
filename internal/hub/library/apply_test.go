package library_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// apply applies a SKILL.md, and undoes it with dry.
func (w *fixture) apply(p account.Principal, in store.Namespace, name, file string, dry bool) (library.ApplyResult, string, error) {
	w.t.Helper()
	applied, err := w.applyText(p, in, name, file, dry)
	return applied.Result, string(applied.Before), err
}

func (w *fixture) applyText(p account.Principal, in store.Namespace, name, file string, dry bool) (library.Applied, error) {
	w.t.Helper()
	var applied library.Applied
	undone := errors.New("undone")
	err := w.db.Tx(w.ctx, func(tx *store.Tx) (err error) {
		applied, err = w.lib.Apply(w.ctx, tx, p, library.SkillText{In: in, Name: name, File: []byte(file)})
		if err == nil && dry {
			return undone
		}
		return err
	})
	if errors.Is(err, undone) {
		err = nil
	}
	w.lib.NotifyChanged()
	return applied, err
}

func prose(prompt string) string {
	return "---\nname: prose\ndescription: Writes.\n---\n" + prompt + "\n"
}

// A skill given as text is created, changed and reverted like an uploaded one, and is
// not approved.
func TestApplyText(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		step := func(p account.Principal, file string, dry bool, want library.ApplyResult, before string) {
			t.Helper()
			got, was, err := w.apply(p, w.team, "prose", file, dry)
			if err != nil || got != want || was != before {
				t.Errorf("%s, before %q, %v; want %s, before %q", got, was, err, want, before)
			}
		}
		step(w.ada, prose("One."), true, library.TextCreated, "")
		if _, err := w.lib.FindID(w.ctx, w.ada, w.team, "prose"); !errors.Is(err, library.ErrNotFound) {
			t.Errorf("after a trial: %v", err)
		}
		step(w.ada, prose("One."), false, library.TextCreated, "")
		step(w.ada, prose("One."), false, library.TextUnchanged, prose("One."))
		step(w.meg, prose("Two."), false, library.TextUpdated, prose("One."))
		step(w.ada, prose("One."), false, library.TextUpdated, prose("Two."))
		id := must(w.lib.FindID(w.ctx, w.bob, w.team, "prose"))(t)
		if id, err := w.lib.FindID(w.ctx, w.eve, w.team, "prose"); id != "" || !errors.Is(err, library.ErrNotFound) {
			t.Errorf("a user who may not see the skill gets the ID %q, %v", id, err)
		}
		s := must(w.lib.Skill(w.ctx, w.bob, id))(t)
		versions := must(w.lib.Versions(w.ctx, w.bob, id, 0, 10))(t)
		if s.Number != 1 || len(versions) != 2 || s.Review != library.Pending || s.CreatedBy != string(w.ada.User) || versions[0].CreatedBy != string(w.meg.User) {
			t.Errorf("%+v %+v", s, versions)
		}
		file := must(w.lib.ReadSkillFile(w.ctx, w.bob, id, 2))(t)
		if string(file) != prose("Two.") {
			t.Errorf("%s", file)
		}
		if r := must(w.lib.Check(w.ctx))(t); len(r.Problems) > 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestApplyTextRefuses(t *testing.T) {
	w := sqlite(t, nil)
	for name, tt := range map[string]struct {
		p          account.Principal
		in         store.Namespace
		name, file string
		is         func(error) bool
	}{
		"a reporter":        {w.bob, w.team, "prose", prose("x"), isType[*account.DeniedError]},
		"somebody else":     {w.eve, w.team, "prose", prose("x"), func(err error) bool { return errors.Is(err, library.ErrNotFound) }},
		"another name":      {w.ada, w.team, "poem", prose("x"), isType[*library.NameError]},
		"no description":    {w.ada, w.team, "prose", "---\nname: [prose\n---\n", isType[*library.BrokenError]},
		"the public places": {w.ada, store.Public, "prose", prose("x"), isType[*account.DeniedError]},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := w.apply(tt.p, tt.in, tt.name, tt.file, false); err == nil || !tt.is(err) {
				t.Errorf("%v", err)
			}
		})
	}

	// What has more files is not made one that has less, but may say the same.
	s := w.upload(w.ada, w.team, "pack", "One.", "scripts/a.py", "print(1)\n")
	same := must(w.lib.ReadSkillFile(w.ctx, w.ada, s.ID, 0))(t)
	if got, _, err := w.apply(w.ada, w.team, "pack", string(same), false); got != library.TextUnchanged || err != nil {
		t.Errorf("%s %v", got, err)
	}
	if _, _, err := w.apply(w.ada, w.team, "pack", strings.Replace(string(same), "One.", "Two.", 1), false); !isType[*library.ExtraFilesError](err) {
		t.Errorf("%v", err)
	}

	// A name under which something is published there is taken.
	mustDo(t, w.lib.Publish(w.ctx, w.root, s.ID, store.Public))
	if _, _, err := w.apply(w.root, store.Public, "pack", string(same), false); !isType[*library.NameError](err) {
		t.Errorf("%v", err)
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A text that defines a server is awaiting review, and the result says so.
func TestApplyTextThatWaits(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		w.applyText(w.ada, w.team, "prose", prose("One."), false)
		file := "---\nname: prose\ndescription: Writes.\nmcpServers: {s: {url: 'https://s.example.com'}}\n---\nTwo.\n"
		for _, want := range []library.ApplyResult{library.TextUpdated, library.TextUnchanged} {
			got := must(w.applyText(w.ada, w.team, "prose", file, false))(t)
			wantEqual(t, got, library.Applied{Result: want, Before: []byte(prose("One.")), Pending: 2})
		}
		id := must(w.lib.FindID(w.ctx, w.ada, w.team, "prose"))(t)
		wantStates(t, w, &library.Skill{ID: id}, "2 pending", "1 approved current")
	})
}
