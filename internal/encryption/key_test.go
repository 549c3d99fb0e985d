package encryption_test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

func TestParseKeys(t *testing.T) {
	a, b := encryption.NewKey(), encryption.NewKey()
	raw, _ := base64.StdEncoding.DecodeString(a.Reveal())
	url := base64.RawURLEncoding.EncodeToString(raw)
	for text, want := range map[string][]encryption.Key{
		a.Reveal():                          {a},
		url:                                 {a},
		" " + a.Reveal() + "\r\n":           {a},
		a.Reveal() + "," + b.Reveal():       {a, b},
		b.Reveal() + "\n" + url:             {b, a},
		"# keys\n" + url + " # mine\n#none": {a},
	} {
		got, err := encryption.ParseKeys(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%d keys, want %d, %v", len(got), len(want), err)
			continue
		}
		for i := range got {
			if got[i].Reveal() != want[i].Reveal() {
				t.Errorf("key %d is %s, want %s", i, got[i], want[i])
			}
		}
	}
}

func TestInvalidKeysAreRefusedAndNotQuoted(t *testing.T) {
	good := encryption.NewKey().Reveal()
	for name, text := range map[string]string{
		"empty": "", "a comment": "# " + good, "a password": "hunter22", "short": good[:40], "long": good[:43] + good, "hexadecimal": strings.Repeat("0123456789abcdef", 4),
		"zeros": base64.StdEncoding.EncodeToString(make([]byte, 32)), "a text": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("hunter22", 4))),
		"the second": good + " hunter22", "many": strings.Repeat(good+" ", 17),
	} {
		keys, err := encryption.ParseKeys(text)
		if err == nil || keys != nil {
			t.Errorf("%s: %d keys", name, len(keys))
		} else if strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), good[:20]) {
			t.Errorf("%s: the error repeats it: %v", name, err)
		}
	}
}

// A key with fewer different bytes than a random one is refused.
func TestKeyMustBeRandom(t *testing.T) {
	for different, want := range map[int]bool{1: false, 15: false, 16: true, 32: true} {
		b := make([]byte, 32)
		for i := range b {
			b[i] = byte(i % different)
		}
		if keys, err := encryption.ParseKeys(base64.StdEncoding.EncodeToString(b)); (err == nil && len(keys) == 1) != want {
			t.Errorf("%d different bytes: %d keys, %v", different, len(keys), err)
		}
	}
}

func TestKeyFileIsCreatedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "keys")
	if _, err := encryption.LoadKeys(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made it: %v", err)
	}
	ids := make([]string, 8)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			keys, err := encryption.LoadOrCreateKeys(t.Context(), path)
			if err != nil || len(keys) != 1 {
				t.Error(len(keys), err)
				return
			}
			ids[i] = keys[0].ID()
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("keys %q; want one for all", ids)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	added := encryption.NewKey()
	if err := os.WriteFile(path, append([]byte(added.Reveal()+"\n"), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := encryption.LoadOrCreateKeys(t.Context(), path)
	if err != nil || len(keys) != 2 || keys[0].ID() != added.ID() || keys[1].ID() != ids[0] {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestFileReadableByOthersIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	path := filepath.Join(t.TempDir(), "keys")
	made, err := encryption.LoadOrCreateKeys(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := encryption.LoadKeys(path); !isUnsafe(err) {
		t.Errorf("%v", err)
	}
	if _, err := encryption.LoadOrCreateKeys(t.Context(), path); !isUnsafe(err) {
		t.Errorf("%v", err)
	}
	// What an orchestrator mounts is readable, and behind a link.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if keys, err := encryption.LoadMountedKeys(link); err != nil || len(keys) != 1 || keys[0].ID() != made[0].ID() {
		t.Errorf("%v, %v", keys, err)
	}
}

func isUnsafe(err error) bool {
	_, ok := errors.AsType[*privatefile.UnsafeError](err)
	return ok
}

func TestMountedKeysRefuses(t *testing.T) {
	dir := t.TempDir()
	large, damaged := filepath.Join(dir, "large"), filepath.Join(dir, "damaged")
	if err := errors.Join(os.WriteFile(large, []byte(strings.Repeat("#", 1<<20)), 0o600), os.WriteFile(damaged, []byte("hunter22"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, large, damaged, filepath.Join(dir, "none")} {
		if keys, err := encryption.LoadMountedKeys(path); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %d keys, %v", path, len(keys), err)
		}
	}
}

func TestMountedKeysLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	key := encryption.NewKey().Reveal()
	for size, want := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		if err := os.WriteFile(path, []byte(key+strings.Repeat("\n", size-len(key))), 0o600); err != nil {
			t.Fatal(err)
		}
		if keys, err := encryption.LoadMountedKeys(path); (err == nil && len(keys) == 1) != want {
			t.Errorf("%d bytes: %d keys, %v", size, len(keys), err)
		}
	}
}

// FuzzParseKeys checks that revealed keys can be parsed again.
func FuzzParseKeys(f *testing.F) {
	f.Add("MDEyMzQ1Njc4OWFiY2RlZkdISUpLTE1OT1BRUlNUVVY=, # x\n-_-_")
	f.Add("MDEyMzQ1Njc4OWFiY2RlZkdISUpLTE1OT1BRUlNUVVY\tMDEyMzQ1Njc4OWFiY2RlZkdISUpLTE1OT1BRUlNUVVZ")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := encryption.ParseKeys(text)
		if err != nil {
			return
		}
		for _, k := range keys {
			again, err := encryption.ParseKeys(k.Reveal())
			if err != nil || len(again) != 1 || again[0].ID() != k.ID() {
				t.Errorf("%s is read as %v, %v", k, again, err)
			}
		}
	})
}
