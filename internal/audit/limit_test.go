//go:build unix

package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// A record that cannot be written is an error, and the next one is written.
func TestAppendWithinLimits(t *testing.T) {
	a, path := newLog(t)
	limittest.EachOpen(t, func() error { return a.Append(t.Context(), record("one")) }, func(error) {
		if got, _ := reasons(t, a, 9); len(got) > 0 {
			t.Errorf("a record is written in spite of an error: %q", got)
		}
	})
	text, err := os.ReadFile(path)
	try(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	try(t, err)
	lines := strings.Repeat(strings.Repeat("x", 1023)+"\n", limittest.MaxFileSize/1024)
	_, err = f.WriteString(lines[:limittest.MaxFileSize-len(text)-11] + "\n") // leaves 10 bytes
	try(t, errors.Join(err, f.Close()))
	limittest.FullDisk(t, func() {
		if err := a.Append(t.Context(), record("two")); err == nil || !strings.HasPrefix(err.Error(), "append to audit log: ") {
			t.Errorf("on a full disk: %v", err)
		}
	})
	try(t, a.Append(t.Context(), record("three")))
	got, problems := reasons(t, a, 9)
	if len(got) == 0 || got[len(got)-1] != "three" || slices.Contains(got, "two") || problems == 0 { // the torn line is one
		t.Errorf("the log has %q and %d problems", got, problems)
	}
	limittest.EachOpen(t, func() error {
		_, _, err := audit.New(path).Read(t.Context(), 9)
		return err
	}, func(err error) {
		if !strings.HasPrefix(err.Error(), "read audit log: ") {
			t.Error(err)
		}
	})
}

func TestReadStopsWithItsContext(t *testing.T) {
	a, path := newLog(t)
	try(t, a.Append(t.Context(), record("one")))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, _, err := a.Read(ctx, 9); !errors.Is(err, enough) {
		t.Errorf("error is %v", err)
	}
	// A file instead of the directory, or a directory instead of the file, is an error.
	try(t, os.Remove(path))
	try(t, os.Mkdir(path, 0o700))
	if err := audit.New(path).Append(t.Context(), record("x")); err == nil {
		t.Error("appended to a directory")
	}
	if err := audit.New(filepath.Join(path, "no", "log")).Append(t.Context(), record("x")); err != nil {
		t.Errorf("missing directories are not created: %v", err)
	}
	file := filepath.Join(t.TempDir(), "f")
	try(t, os.WriteFile(file, nil, 0o600))
	if err := audit.New(filepath.Join(file, "log")).Append(t.Context(), record("x")); err == nil {
		t.Error("appended below a file")
	}
}

// A record gets the time of its writing, in UTC.
func TestAppendSetsTime(t *testing.T) {
	a, _ := newLog(t)
	before := time.Now()
	try(t, a.Append(t.Context(), record("now")))
	late := record("then")
	late.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	try(t, a.Append(t.Context(), late))
	records, _, err := a.Read(t.Context(), 9)
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if got := records[0].Time; got.Before(before) || got.After(time.Now()) || got.Location() != time.UTC {
		t.Errorf("time %v", got)
	}
	if got := records[1].Time; !got.Equal(late.Time) || got.Location() != time.UTC {
		t.Errorf("time %v, want %v", got, late.Time)
	}
}
