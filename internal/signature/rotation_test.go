package signature_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/signature"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// year returns the same day some years later.
func year(n int) time.Time { return start.AddDate(n, 0, 0) }

// chain returns three keys of a publisher, each of which replaces the one
// before. The last one never expires.
func chain(t testing.TB) (all [3]signature.PrivateKey, public [3]string) {
	t.Helper()
	for i := range all {
		private, key := keys(t, "example.com")
		public[i] = key
		if i == 0 {
			all[0] = signature.PrivateKey{Private: private, Expires: year(2)}
			continue
		}
		next, err := all[i-1].Replace(private, []time.Time{{}, year(4), {}}[i], year(i))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = next
	}
	return all, public
}

func signed(t testing.TB, key signature.PrivateKey, r signature.Release) (*signature.Signature, []byte) {
	t.Helper()
	sig, err := key.Sign(manifest(t, pdf()), "pdf", r)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signature.Parse(sig)
	if err != nil {
		t.Fatal(err)
	}
	return s, sig
}

func TestRotation(t *testing.T) {
	all, public := chain(t)
	s, sig := signed(t, all[2], signature.Release{Counter: 3, Time: year(3)})
	if err := signature.Verify(manifest(t, pdf()), "pdf", sig, public[2]); err != nil {
		t.Error(err)
	}
	if len(s.Rotations) != 2 || !s.KeyExpires.IsZero() {
		t.Errorf("signature has %d rotations, expires %v", len(s.Rotations), s.KeyExpires)
	}
	for i, want := range []bool{true, true, false} {
		if got := s.Succeeds(public[i], time.Time{}); got != want {
			t.Errorf("succeeds key %d: %v", i, got)
		}
	}
	if _, stranger := keys(t, "example.com"); s.Succeeds(stranger, time.Time{}) {
		t.Error("it succeeds the key of a stranger")
	}
	// A statement counts only if it was made before its key expired.
	if !s.Succeeds(public[0], year(1).Add(time.Second)) || s.Succeeds(public[0], year(1)) {
		t.Error("the expiry of the first key")
	}

	path := filepath.Join(t.TempDir(), "key")
	if err := signature.WritePrivateKey(path, all[2]); err != nil {
		t.Fatal(err)
	}
	again, err := signature.ReadPrivateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[2], again, cmp.AllowUnexported(signature.Rotation{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInvalidRotations(t *testing.T) {
	all, public := chain(t)
	_, stranger := keys(t, "example.com")
	private, _ := keys(t, "example.com")
	if _, err := all[0].Replace(private, time.Time{}, year(2)); err == nil {
		t.Error("an expired key names another one")
	}
	if _, err := all[0].Replace(all[0].Private, time.Time{}, year(1)); err != nil {
		t.Log(err) // rejected when it is parsed, too
	}
	_, sig := signed(t, all[1], signature.Release{Counter: 1, Time: year(1)})
	text := string(sig)[:strings.LastIndex(string(sig), "\n\n")+1]
	line := text[strings.Index(text, "key-replaces "):]
	line = line[:strings.Index(line, "\n")+1]
	for _, tt := range []struct{ name, old, new string }{
		{"another old key", "key-replaces " + public[0], "key-replaces " + stranger},
		{"another time", year(1).Format(time.RFC3339) + " " + year(4).Format(time.RFC3339), year(0).Format(time.RFC3339) + " " + year(4).Format(time.RFC3339)},
		{"another expiry of the key", "key-expires " + year(4).Format(time.RFC3339), "key-expires " + year(5).Format(time.RFC3339)},
		{"no expiry of the key", "key-expires " + year(4).Format(time.RFC3339) + "\n", ""},
		{"twice", line, line + line},
		{"no signature", line, strings.Join(strings.Fields(line)[:5], " ") + "\n"},
		{"signed after the key expired", "time " + year(1).Format(time.RFC3339), "time " + year(4).Format(time.RFC3339)},
		{"without a counter", "counter 1\n", ""},
	} {
		if !strings.Contains(text, tt.old) {
			t.Fatalf("%s: %q is not in\n%s", tt.name, tt.old, text)
		}
		bad := resign(t, strings.Replace(text, tt.old, tt.new, 1), all[1].Private)
		if _, err := signature.Parse(bad); !isDamaged(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}

	// Who has no old key cannot use the statement for another one.
	forged := signature.PrivateKey{Private: private, Expires: all[1].Expires, Rotations: all[1].Rotations}
	if _, err := forged.Sign(manifest(t, pdf()), "pdf", signature.Release{Counter: 1, Time: year(1)}); err == nil {
		t.Error("a statement about another key is signed")
	}
	if err := signature.WritePrivateKey(filepath.Join(t.TempDir(), "key"), forged); err == nil {
		t.Error("a statement about another key is written")
	}
}

func isDamaged(err error) bool {
	_, ok := errors.AsType[*signature.DamagedError](err)
	return ok
}

// A pin records the expiry of its key, which never becomes later, and the keys
// that were replaced. Programs that know neither refuse the file by its version.
func TestPinsAdvance(t *testing.T) {
	all, public := chain(t)
	p := signature.Pins{Path: filepath.Join(t.TempDir(), "publishers.json")}
	const source = "https://example.com/a"
	if _, err := p.Check(t.Context(), source, public[0]); err != nil {
		t.Fatal(err)
	}
	advance := func(key signature.PrivateKey, when time.Time) signature.Pin {
		t.Helper()
		s, _ := signed(t, key, signature.Release{Counter: 1, Time: when})
		if err := p.Advance(t.Context(), source, s); err != nil {
			t.Fatal(err)
		}
		k, err := p.Find(source)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := advance(all[0], year(0)); !k.Expires.Equal(year(2)) || len(k.Previous) > 0 {
		t.Errorf("the expiry: %+v", k)
	}
	for _, later := range []time.Time{year(9), {}} {
		stolen := signature.PrivateKey{Private: all[0].Private, Expires: later}
		if k := advance(stolen, year(1)); !k.Expires.Equal(year(2)) {
			t.Errorf("a later expiry: %+v", k)
		}
	}
	if k := advance(all[1], year(1)); k.Key != public[1] || !cmp.Equal(k.Previous, []string{public[0]}) || !k.Expires.Equal(year(4)) {
		t.Errorf("replaced: %+v", k)
	}
	if text := readFile(t, p.Path); !strings.Contains(text, `"version": 2`) {
		t.Errorf("the file is\n%s", text)
	}
	if err := p.Advance(t.Context(), "https://example.com/b", &signature.Signature{Key: public[0]}); !errors.Is(err, signature.ErrNotPinned) {
		t.Errorf("of an unknown source: %v", err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
