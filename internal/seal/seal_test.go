package seal_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/seal"
)

var label = seal.Label{Owner: "user/7", Name: "API_KEY"}

func sealer(t testing.TB, keys ...seal.Key) *seal.Sealer {
	t.Helper()
	s, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sealed(t testing.TB, s *seal.Sealer, value string) string {
	t.Helper()
	text, err := s.Seal([]byte(value), label)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSealedValuesOpen(t *testing.T) {
	s := sealer(t, seal.NewKey())
	for _, value := range []string{"", "v", "hunter22", "\x00\xff", strings.Repeat("x", seal.MaxValue)} {
		text := sealed(t, s, value)
		got, err := s.Open(text, label)
		if err != nil || string(got) != value {
			t.Errorf("%.20q: %.20q, %v", value, got, err)
		}
		if len(value) > 5 && strings.Contains(text, value) {
			t.Errorf("%.20q is in %.60q", value, text)
		}
		if again := sealed(t, s, value); again == text {
			t.Errorf("%.20q is sealed to the same text twice", value)
		}
		if s.Stale(text) {
			t.Error("what was sealed now is stale")
		}
	}
}

// A row that was copied, changed, or sealed with a key that is gone does not open,
// and the error says which, without the value.
func TestWhatDoesNotOpen(t *testing.T) {
	key := seal.NewKey()
	s := sealer(t, key)
	text := sealed(t, s, "hunter22")
	unknown := sealed(t, sealer(t, seal.NewKey()), "hunter22")
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(text, "A")]
	tests := []struct {
		name, text string
		label      seal.Label
		want       error
	}{
		{"another owner", text, seal.Label{Owner: "user/8", Name: "API_KEY"}, seal.ErrAltered},
		{"another name", text, seal.Label{Owner: "user/7", Name: "OTHER"}, seal.ErrAltered},
		{"a border that moved", text, seal.Label{Owner: "user/7API", Name: "_KEY"}, seal.ErrAltered},
		{"no label", text, seal.Label{}, seal.ErrAltered},
		{"the first byte", text[:17] + swap(text[17]) + text[18:], label, seal.ErrAltered},
		{"cut", text[:len(text)-4], label, seal.ErrAltered},
		{"longer", text + "AAAA", label, seal.ErrAltered},
		{"nothing but the key", text[:17], label, seal.ErrAltered},
		{"the last byte", text[:len(text)-1] + last, label, nil},
		{"a line break", text[:30] + "\n" + text[30:], label, seal.ErrForm},
		{"no base64", text[:17] + "!!!!", label, seal.ErrForm},
		{"plain text", "hunter22", label, seal.ErrForm},
		{"empty", "", label, seal.ErrForm},
		{"another version", "lo2" + text[3:], label, seal.ErrForm},
		{"a short id", "lo1.abc.AAAA", label, seal.ErrForm},
		{"endless", text + strings.Repeat("A", 1<<20), label, seal.ErrForm},
		{"another key", unknown, label, &seal.UnknownKeyError{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, err := s.Open(tt.text, tt.label)
			key, isKey := errors.AsType[*seal.UnknownKeyError](err)
			switch {
			case err == nil || value != nil:
				t.Fatalf("%q, %v", value, err)
			case strings.Contains(err.Error(), "hunter22"):
				t.Errorf("the value is in %q", err)
			case isKey && key.ID != unknown[4:16]:
				t.Errorf("key %s, want %s", key.ID, unknown[4:16])
			case tt.want != nil && !isKey && !errors.Is(err, tt.want):
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func swap(b byte) string {
	if b == 'A' {
		return "B"
	}
	return "A"
}

func TestSealRefuses(t *testing.T) {
	s := sealer(t, seal.NewKey())
	for name, f := range map[string]func() (string, error){
		"too long": func() (string, error) { return s.Seal(make([]byte, seal.MaxValue+1), label) },
		"no owner": func() (string, error) { return s.Seal([]byte("hunter22"), seal.Label{Name: "A"}) },
		"no name":  func() (string, error) { return s.Seal([]byte("hunter22"), seal.Label{Owner: "A"}) },
	} {
		if text, err := f(); err == nil || text != "" || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := seal.New(); err == nil {
		t.Error("there is a sealer without a key")
	}
}

// After a change of keys, old values open, new ones are sealed with the new key, and
// which ones are to be sealed again can be told.
func TestKeysAreChanged(t *testing.T) {
	first, second := seal.NewKey(), seal.NewKey()
	old := sealed(t, sealer(t, first), "hunter22")
	s := sealer(t, second, first)
	if got, err := s.Open(old, label); err != nil || string(got) != "hunter22" || !s.Stale(old) {
		t.Errorf("%q, %v, stale %v", got, err, s.Stale(old))
	}
	again := sealed(t, s, "hunter22")
	if s.Stale(again) || !strings.Contains(again, second.ID()) {
		t.Errorf("%s is not of %s", again, second)
	}
	if got, err := sealer(t, second).Open(again, label); err != nil || string(got) != "hunter22" {
		t.Errorf("without the old key: %q, %v", got, err)
	}
}

func TestAKeyPrintsAsItsID(t *testing.T) {
	k := seal.NewKey()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k)
	js, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(k.Reveal())
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", k, k, k, k, k, k), fmt.Sprintf("%+v", struct{ K seal.Key }{k}), log.String(), string(js)} {
		if !strings.Contains(text, k.ID()) || strings.Contains(text, k.Reveal()) || strings.Contains(text, string(raw)) || strings.Contains(text, fmt.Sprintf("%x", raw)) {
			t.Errorf("%s", text)
		}
	}
	if len(k.ID()) != 12 || k.ID() == seal.NewKey().ID() {
		t.Errorf("id %q", k.ID())
	}
}

// FuzzOpen: nothing opens but what was sealed, with its label.
func FuzzOpen(f *testing.F) {
	keys, err := seal.ParseKeys("MDEyMzQ1Njc4OWFiY2RlZkdISUpLTE1OT1BRUlNUVVY=")
	if err != nil {
		f.Fatal(err)
	}
	s := sealer(f, keys...)
	good := sealed(f, s, "hunter22")
	f.Add(good, "user/7", "API_KEY")
	f.Add(good[:20], "user/7", "API_KEY")
	f.Add("lo1."+keys[0].ID()+".", "", "")
	f.Fuzz(func(t *testing.T, text, owner, name string) {
		value, err := s.Open(text, seal.Label{Owner: owner, Name: name})
		if err == nil && string(value) != "hunter22" { // of whichever process that fuzzes
			t.Errorf("%q opens to %q", text, value)
		}
		if err == nil && (owner != label.Owner || name != label.Name) {
			t.Errorf("it opens for %q of %q", name, owner)
		}
	})
}

func ExampleSealer() {
	s, err := seal.New(seal.NewKey())
	if err != nil {
		fmt.Println(err)
		return
	}
	mine := seal.Label{Owner: "user/7", Name: "API_KEY"}
	kept, err := s.Seal([]byte("hunter22"), mine)
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := s.Open(kept, mine)
	fmt.Println(string(value), err)
	_, err = s.Open(kept, seal.Label{Owner: "user/8", Name: "API_KEY"})
	fmt.Println(err)
	// Output:
	// hunter22 <nil>
	// open "API_KEY" of "user/8": it was changed, or sealed for another owner or name
}

func BenchmarkOpen(b *testing.B) {
	s := sealer(b, seal.NewKey())
	value := make([]byte, 64)
	_, _ = rand.Read(value)
	text := sealed(b, s, string(value))
	for b.Loop() {
		if _, err := s.Open(text, label); err != nil {
			b.Fatal(err)
		}
	}
}
