package store_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
)

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	lists := make(chan []string)
	for range 4 {
		go func() {
			ids := make([]string, 2000)
			for i := range ids {
				ids[i] = store.NewID()
			}
			lists <- ids
		}()
	}
	var all []string
	for range 4 {
		ids := <-lists
		if !slices.IsSorted(ids) {
			t.Error("IDs are not sorted")
		}
		all = append(all, ids...)
	}
	for _, id := range all {
		if !form.MatchString(id) {
			t.Fatalf("%s is no UUID of version 7", id)
		}
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8000 {
		t.Errorf("%d different IDs of 8000", n)
	}
}

// The first 48 bits are the milliseconds since 1970, as in IDs that other versions stored.
func TestNewIDStartsWithTheTime(t *testing.T) {
	before := time.Now().UnixMilli()
	id := store.NewID()
	var at int64
	for _, c := range id[:8] + id[9:13] {
		at = at<<4 | int64(slices.Index([]byte("0123456789abcdef"), byte(c)))
	}
	if after := time.Now().UnixMilli(); at < before || at > after+100 {
		t.Errorf("%s is of %d, not between %d and %d", id, at, before, after)
	}
}

// A derived ID depends only on the time and the seed, and sorts by the time.
func TestDeriveID(t *testing.T) {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	id := store.DeriveID(at, "a")
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("%s is no UUID of version 8", id)
	}
	if store.DeriveID(at, "a") != id || store.DeriveID(at, "b") == id {
		t.Error("the ID does not identify the seed")
	}
	in := []string{store.DeriveID(time.Time{}, "a"), store.DeriveID(at.Add(-time.Millisecond), "c"), id, store.DeriveID(at.AddDate(0, 0, 1), "d"), store.NewID()}
	if now := time.Now(); now.After(at.AddDate(0, 0, 1)) && !slices.IsSorted(in) {
		t.Errorf("not sorted by time: %q", in)
	}
}
