package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/store"
)

// must returns a result, or ends the test.
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

func newUser(t testing.TB, db *store.DB, name string) store.User {
	t.Helper()
	return must(db.Users.Create(t.Context(), store.User{Name: name}))(t)
}

func newSkill(t testing.TB, db *store.DB, in store.Namespace, name string) store.Skill {
	t.Helper()
	return must(db.Skills.Create(t.Context(), store.Skill{Namespace: in, Name: name, CreatedBy: "someone"}))(t)
}

// newVersion adds a version with one file, whose text is its digest too.
func newVersion(t testing.TB, db *store.DB, skill, text string) store.Version {
	t.Helper()
	hash := must(db.Blobs.Put(t.Context(), []byte(text)))(t)[0]
	v := store.Version{SkillID: skill, Digest: "sha256:" + text, Display: strings.ToUpper(text), Description: "about " + text}
	return must(db.Versions.Add(t.Context(), v, []store.File{{Path: "SKILL.md", SHA256: hash, Size: int64(len(text))}}, nil))(t)
}

// at returns a time that both databases store unchanged.
func at(hour int) time.Time { return time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC) }

// every reads a list to its end, two at a time.
func every[T any](t testing.TB, list func(store.Page) ([]T, string, error)) []T {
	t.Helper()
	var (
		out  []T
		page = store.Page{Limit: 2}
	)
	for {
		rows, next, err := list(page)
		mustDo(t, err)
		out = append(out, rows...)
		if next == "" {
			return out
		}
		if len(rows) != 2 {
			t.Fatalf("a page that is not the last has %d rows", len(rows))
		}
		page.After = next
	}
}

func names[T any](rows []T, name func(T) string) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, name(r))
	}
	return out
}

func isBusy(err error) bool { return errors.Is(err, store.ErrBusy) }
