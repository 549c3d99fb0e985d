package encryption_test

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

	"github.com/loadout-dev/loadout/internal/encryption"
)

var label = encryption.Label{Owner: "user/7", Name: "API_KEY"}

func sealer(t testing.TB, keys ...encryption.Key) *encryption.Cipher {
	t.Helper()
	s, err := encryption.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sealed(t testing.TB, s *encryption.Cipher, value string) string {
	t.Helper()
	text, err := s.Encrypt([]byte(value), label)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEncryptedValuesDecrypt(t *testing.T) {
	s := sealer(t, encryption.NewKey())
	for _, value := range []string{"", "v", "hunter22", "\x00\xff", strings.Repeat("x", encryption.MaxValue)} {
		text := sealed(t, s, value)
		got, err := s.Decrypt(text, label)
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

// A value that was copied to another row, changed, or encrypted with an unknown key is
// refused. The error gives the reason and not the value.
func TestDecryptRefuses(t *testing.T) {
	key := encryption.NewKey()
	s := sealer(t, key)
	text := sealed(t, s, "hunter22")
	unknown := sealed(t, sealer(t, encryption.NewKey()), "hunter22")
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(text, "A")]
	tests := []struct {
		name, text string
		label      encryption.Label
		want       error
	}{
		{"another owner", text, encryption.Label{Owner: "user/8", Name: "API_KEY"}, encryption.ErrAltered},
		{"another name", text, encryption.Label{Owner: "user/7", Name: "OTHER"}, encryption.ErrAltered},
		{"a border that moved", text, encryption.Label{Owner: "user/7API", Name: "_KEY"}, encryption.ErrAltered},
		{"no label", text, encryption.Label{}, encryption.ErrAltered},
		{"the first byte", text[:17] + swap(text[17]) + text[18:], label, encryption.ErrAltered},
		{"cut", text[:len(text)-4], label, encryption.ErrAltered},
		{"longer", text + "AAAA", label, encryption.ErrAltered},
		{"nothing but the key", text[:17], label, encryption.ErrAltered},
		{"the last byte", text[:len(text)-1] + last, label, nil},
		{"a line break", text[:30] + "\n" + text[30:], label, encryption.ErrFormat},
		{"no base64", text[:17] + "!!!!", label, encryption.ErrFormat},
		{"plain text", "hunter22", label, encryption.ErrFormat},
		{"empty", "", label, encryption.ErrFormat},
		{"another version", "lo2" + text[3:], label, encryption.ErrFormat},
		{"a short id", "lo1.abc.AAAA", label, encryption.ErrFormat},
		{"endless", text + strings.Repeat("A", 1<<20), label, encryption.ErrFormat},
		{"another key", unknown, label, &encryption.UnknownKeyError{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, err := s.Decrypt(tt.text, tt.label)
			key, isKey := errors.AsType[*encryption.UnknownKeyError](err)
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

func TestEncryptRefuses(t *testing.T) {
	s := sealer(t, encryption.NewKey())
	for name, f := range map[string]func() (string, error){
		"too long": func() (string, error) { return s.Encrypt(make([]byte, encryption.MaxValue+1), label) },
		"no owner": func() (string, error) { return s.Encrypt([]byte("hunter22"), encryption.Label{Name: "A"}) },
		"no name":  func() (string, error) { return s.Encrypt([]byte("hunter22"), encryption.Label{Owner: "A"}) },
	} {
		if text, err := f(); err == nil || text != "" || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := encryption.New(); err == nil {
		t.Error("unexpected sealer without a key")
	}
}

func TestLargestValueDecrypts(t *testing.T) {
	s := sealer(t, encryption.NewKey())
	value := bytes.Repeat([]byte("x"), encryption.MaxValue)
	text, err := s.Encrypt(value, label)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Decrypt(text, label); err != nil || !bytes.Equal(got, value) {
		t.Errorf("decrypted %d bytes, %v", len(got), err)
	}
}

// After a key rotation, old values decrypt, new ones use the new key, and values that
// need reencryption can be found.
func TestKeysAreRotated(t *testing.T) {
	first, second := encryption.NewKey(), encryption.NewKey()
	old := sealed(t, sealer(t, first), "hunter22")
	s := sealer(t, second, first)
	if got, err := s.Decrypt(old, label); err != nil || string(got) != "hunter22" || !s.Stale(old) {
		t.Errorf("%q, %v, stale %v", got, err, s.Stale(old))
	}
	again := sealed(t, s, "hunter22")
	if s.Stale(again) || !strings.Contains(again, second.ID()) {
		t.Errorf("%s is not of %s", again, second)
	}
	if got, err := sealer(t, second).Decrypt(again, label); err != nil || string(got) != "hunter22" {
		t.Errorf("without the old key: %q, %v", got, err)
	}
}

func TestKeyPrintsAsID(t *testing.T) {
	k := encryption.NewKey()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k)
	js, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(k.Reveal())
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", k, k, k, k, k, k), fmt.Sprintf("%+v", struct{ K encryption.Key }{k}), log.String(), string(js)} {
		if !strings.Contains(text, k.ID()) || strings.Contains(text, k.Reveal()) || strings.Contains(text, string(raw)) || strings.Contains(text, fmt.Sprintf("%x", raw)) {
			t.Errorf("%s", text)
		}
	}
	if len(k.ID()) != 12 || k.ID() == encryption.NewKey().ID() {
		t.Errorf("id %q", k.ID())
	}
}

// FuzzOpen checks that only encrypted values with the right label decrypt.
func FuzzOpen(f *testing.F) {
	keys, err := encryption.ParseKeys("MDEyMzQ1Njc4OWFiY2RlZkdISUpLTE1OT1BRUlNUVVY=")
	if err != nil {
		f.Fatal(err)
	}
	s := sealer(f, keys...)
	good := sealed(f, s, "hunter22")
	f.Add(good, "user/7", "API_KEY")
	f.Add(good[:20], "user/7", "API_KEY")
	f.Add("lo1."+keys[0].ID()+".", "", "")
	f.Fuzz(func(t *testing.T, text, owner, name string) {
		value, err := s.Decrypt(text, encryption.Label{Owner: owner, Name: name})
		if err == nil && string(value) != "hunter22" { // of whichever process that fuzzes
			t.Errorf("%q opens to %q", text, value)
		}
		if err == nil && (owner != label.Owner || name != label.Name) {
			t.Errorf("it opens for %q of %q", name, owner)
		}
	})
}

func ExampleCipher() {
	s, err := encryption.New(encryption.NewKey())
	if err != nil {
		fmt.Println(err)
		return
	}
	mine := encryption.Label{Owner: "user/7", Name: "API_KEY"}
	kept, err := s.Encrypt([]byte("hunter22"), mine)
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := s.Decrypt(kept, mine)
	fmt.Println(string(value), err)
	_, err = s.Decrypt(kept, encryption.Label{Owner: "user/8", Name: "API_KEY"})
	fmt.Println(err)
	// Output:
	// hunter22 <nil>
	// decrypt "API_KEY" of "user/8": value was altered or encrypted for another owner or name
}

func BenchmarkOpen(b *testing.B) {
	s := sealer(b, encryption.NewKey())
	value := make([]byte, 64)
	_, _ = rand.Read(value)
	text := sealed(b, s, string(value))
	for b.Loop() {
		if _, err := s.Decrypt(text, label); err != nil {
			b.Fatal(err)
		}
	}
}
