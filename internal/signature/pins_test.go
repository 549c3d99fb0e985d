package signature_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/signature"
)

const source = "https://example.com/skills.git"

func newPins(t *testing.T) signature.Pins {
	return signature.Pins{Path: filepath.Join(t.TempDir(), "state", "publishers.json")}
}

func TestFirstUsePinsTheKey(t *testing.T) {
	ctx, pins := t.Context(), newPins(t)
	_, key := keys(t, "example.com/tools")
	_, other := keys(t, "example.com/tools")

	if all, err := pins.All(); err != nil || len(all) > 0 {
		t.Fatalf("All = %v, %v", all, err)
	}
	if k, err := pins.Check(ctx, source, ""); err != nil || !cmp.Equal(k, signature.Pin{}) {
		t.Fatalf("not signed, nothing kept: %v, %v", k, err)
	}
	if _, err := pins.Find(source); !errors.Is(err, signature.ErrNotPinned) {
		t.Errorf("Find before: %v", err)
	}
	first, err := pins.Check(ctx, source, key)
	if err != nil || !first.First || first.Key != key || first.Source != source || first.Since.IsZero() {
		t.Fatalf("first use: %v, %v", first, err)
	}
	again, err := pins.Check(ctx, source, key)
	if first.First = false; err != nil || !cmp.Equal(again, first) {
		t.Errorf("second use: %v, %v, want %v", again, err, first)
	}
	if k, err := pins.Find(source); err != nil || !cmp.Equal(k, first) {
		t.Errorf("Find = %v, %v, want %v", k, err, first)
	}
	for _, now := range []string{other, ""} {
		_, err := pins.Check(ctx, source, now)
		got, ok := errors.AsType[*signature.ChangedKeyError](err)
		if !ok || *got != (signature.ChangedKeyError{Source: source, PinnedKey: key, CurrentKey: now}) {
			t.Fatalf("signed by %q now: %v", now, err)
		}
		if !strings.Contains(err.Error(), signature.Fingerprint(key)) || now != "" && !strings.Contains(err.Error(), signature.Fingerprint(now)) {
			t.Errorf("%q does not tell the fingerprints", err)
		}
	}
	if k, err := pins.Check(ctx, source+"/other", other); err != nil || !k.First {
		t.Errorf("another source: %v, %v", k, err)
	}
}

func TestUserChangesPins(t *testing.T) {
	ctx, pins := t.Context(), newPins(t)
	_, key := keys(t, "example.com/tools")
	_, other := keys(t, "example.com/tools")
	for _, k := range []string{key, other} {
		if _, err := pins.Set(ctx, source, k); err != nil {
			t.Fatal(err)
		}
		if got, err := pins.Check(ctx, source, k); err != nil || got.Key != k || got.First {
			t.Errorf("%v, %v", got, err)
		}
	}
	if _, err := pins.Check(ctx, "a", key); err != nil {
		t.Fatal(err)
	}
	if all, err := pins.All(); err != nil || len(all) != 2 || all[0].Source != "a" || all[1].Key != other {
		t.Errorf("All = %v, %v", all, err)
	}
	if k, err := pins.Remove(ctx, source); err != nil || k.Key != other {
		t.Errorf("Remove = %v, %v", k, err)
	}
	if _, err := pins.Remove(ctx, source); !errors.Is(err, signature.ErrNotPinned) {
		t.Errorf("Remove again: %v", err)
	}
	if k, err := pins.Check(ctx, source, key); err != nil || !k.First {
		t.Errorf("after it was removed: %v, %v", k, err)
	}
}

// Of processes that meet a source at the same time one keeps its key, and the
// others see that.
func TestConcurrentFirstUsePinsOnce(t *testing.T) {
	ctx, pins := t.Context(), newPins(t)
	var public [8]string
	for i := range public {
		_, public[i] = keys(t, fmt.Sprintf("key-%d", i))
	}
	var wg sync.WaitGroup
	var first, changed [8]bool
	for i := range public {
		wg.Go(func() {
			k, err := pins.Check(ctx, source, public[i])
			_, changed[i] = errors.AsType[*signature.ChangedKeyError](err)
			first[i] = err == nil && k.First
		})
	}
	wg.Wait()
	all, err := pins.All()
	if err != nil || len(all) != 1 {
		t.Fatalf("All = %v, %v", all, err)
	}
	for i, k := range public {
		if kept := all[0].Key == k; first[i] != kept || changed[i] == kept {
			t.Errorf("key %d: kept %v, first %v, changed %v", i, kept, first[i], changed[i])
		}
	}
}

func TestUnreadablePinsDeny(t *testing.T) {
	ctx := t.Context()
	_, key := keys(t, "example.com/tools")
	kept := fmt.Sprintf(`{"source": %q, "key": %q, "since": "2026-01-02T03:04:05Z"}`, source, key)
	for name, content := range map[string]string{
		"empty":              "",
		"no JSON":            "{",
		"something behind":   `{"version": 1, "publishers": []} x`,
		"a newer version":    `{"version": 3, "publishers": []}`,
		"no version":         `{"publishers": []}`,
		"an entry twice":     `{"version": 1, "publishers": [` + kept + `,` + kept + `]}`,
		"no key":             `{"version": 1, "publishers": [{"source": "x"}]}`,
		"a source of blanks": `{"version": 1, "publishers": [` + strings.Replace(kept, source, `\n`, 1) + `]}`,
		"too large":          `{"version": 1, "publishers": []}` + strings.Repeat(" ", 8<<20),
	} {
		t.Run(name, func(t *testing.T) {
			pins := newPins(t)
			if err := os.MkdirAll(filepath.Dir(pins.Path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(pins.Path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			denied(t, pins, key)
			if got, err := os.ReadFile(pins.Path); err != nil || string(got) != content {
				t.Errorf("it was changed to %.200q, %v", got, err)
			}
			if _, err := pins.Set(ctx, source, key); err == nil {
				t.Error("Set wrote over it")
			}
		})
	}
}

func denied(t *testing.T, pins signature.Pins, key string) error {
	t.Helper()
	_, err := pins.Check(t.Context(), source, key)
	if err == nil {
		t.Error("Check lets a key pass")
	}
	if _, err := pins.Check(t.Context(), source, ""); err == nil {
		t.Error("Check lets no signature pass")
	}
	if _, err := pins.Find(source); err == nil || errors.Is(err, signature.ErrNotPinned) {
		t.Errorf("Find: %v", err)
	}
	if _, err := pins.All(); err == nil {
		t.Error("All lists something")
	}
	return err
}

func TestUnsafePinsDeny(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on this system")
	}
	_, key := keys(t, "example.com/tools")
	for name, change := range map[string]func(pins signature.Pins) error{
		"a file that others write":      func(p signature.Pins) error { return os.Chmod(p.Path, 0o666) },
		"a file that others read":       func(p signature.Pins) error { return os.Chmod(p.Path, 0o644) },
		"a directory that others write": func(p signature.Pins) error { return os.Chmod(filepath.Dir(p.Path), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			pins := newPins(t)
			if _, err := pins.Check(t.Context(), source, key); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(pins.Path); err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("mode %v, %v", info.Mode(), err)
			}
			if err := change(pins); err != nil {
				t.Fatal(err)
			}
			if err, ok := errors.AsType[*privatefile.UnsafeError](denied(t, pins, key)); !ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestUnpinnableSources(t *testing.T) {
	_, key := keys(t, "example.com/tools")
	for _, source := range []string{"", "a\nb", "a\x1b[2J", strings.Repeat("x", signature.MaxSourceBytes+1),
		"https://token@example.com/skills", "https://user:password@example.com/skills", "ssh://git:password@example.com/skills"} {
		pins := newPins(t)
		for name, err := range map[string]error{
			"Check": second(pins.Check(t.Context(), source, key)),
			"Set":   second(pins.Set(t.Context(), source, key)),
		} {
			if err == nil {
				t.Errorf("%s keeps a key for %q", name, source)
			} else if strings.Contains(err.Error(), "password@") || strings.Contains(err.Error(), "token@") || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%s: the error is %q", name, err)
			}
		}
	}
	for _, source := range []string{"git@example.com:skills.git", "ssh://git@example.com/skills.git", "/home/skills", "example.com index"} {
		if _, err := newPins(t).Check(t.Context(), source, key); err != nil {
			t.Errorf("%q: %v", source, err)
		}
	}
	if _, err := newPins(t).Check(t.Context(), source, "no key"); err == nil {
		t.Error("what is not a key is stored")
	}
}

func second(_ signature.Pin, err error) error { return err }

func TestPinLimit(t *testing.T) {
	_, key := keys(t, "example.com/tools")
	pins := newPins(t)
	if _, err := pins.Check(t.Context(), "0", key); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`{"version": 1, "publishers": [`)
	for i := range signature.MaxPins {
		fmt.Fprintf(&b, `%s{"source": "%d", "key": %q, "since": "2026-01-02T03:04:05Z"}`, map[bool]string{true: ",", false: ""}[i > 0], i, key)
	}
	b.WriteString("]}")
	if err := os.WriteFile(pins.Path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Check(t.Context(), "one more", key); err == nil || !strings.Contains(err.Error(), "remove some") {
		t.Errorf("error %v", err)
	}
	if _, err := pins.Set(t.Context(), "0", key); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

// All spellings of a source have one pin, also those that earlier programs
// stored.
func TestPinsOfOneIdentity(t *testing.T) {
	_, one := keys(t, "example.com")
	_, two := keys(t, "example.com")
	p := signature.Pins{Path: filepath.Join(t.TempDir(), "publishers.json")}
	for i, source := range []string{"HTTPS://EXAMPLE.COM/A", "https://example.com/a", "https://example.com/b"} {
		if _, err := p.Set(t.Context(), source, []string{one, two, two}[i]); err != nil {
			t.Fatal(err)
		}
	}
	p.Identity = strings.ToLower
	for _, source := range []string{"https://example.com/a", "https://EXAMPLE.com/A"} {
		if k, err := p.Find(source); err != nil || k.Key != one {
			t.Errorf("%s has %+v, %v", source, k, err)
		}
		if _, err := p.Check(t.Context(), source, two); err == nil {
			t.Errorf("%s accepts another key", source)
		}
	}
	if all, err := p.All(); err != nil || len(all) != 2 {
		t.Errorf("all are %+v, %v", all, err)
	}
	if k, err := p.Remove(t.Context(), "https://example.com/A"); err != nil || k.Key != one {
		t.Errorf("removed %+v, %v", k, err)
	}
	if k, err := p.Check(t.Context(), "https://example.com/a", two); err != nil || !k.First {
		t.Errorf("after it was removed: %+v, %v", k, err)
	}
}
