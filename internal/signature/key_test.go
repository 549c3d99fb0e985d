package signature_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/signature"
)

func TestKeys(t *testing.T) {
	// The base64 of some keys has a +, which also stands between their parts.
	plus := 0
	for range 200 {
		private, public := keys(t, "example.com/tools")
		got, err := signature.PublicKey(private)
		if err != nil || got != public {
			t.Fatalf("Public = %q, %v, want %q", got, err, public)
		}
		if name := signature.KeyName(public); name != "example.com/tools" {
			t.Fatalf("KeyName(%q) = %q", public, name)
		}
		if strings.Count(public, "+") > 2 {
			plus++
		}
	}
	if plus == 0 {
		t.Error("no key with a + in its base64 was tried")
	}
}

func TestKeyNames(t *testing.T) {
	for _, name := range []string{"", "a b", "a+b", "a\nb", "a\u00a0b", "a\u202eb", "a\xff", strings.Repeat("a", 257)} {
		if _, _, err := signature.GenerateKey(name); err == nil {
			t.Errorf("%q is the name of a key", name)
		}
	}
	for _, name := range []string{"a", "example.com/tools", "größe", strings.Repeat("a", 256)} {
		keys(t, name)
	}
}

func TestFingerprint(t *testing.T) {
	_, a := keys(t, "example.com/tools")
	_, b := keys(t, "example.com/tools")
	if signature.Fingerprint(a) == signature.Fingerprint(b) {
		t.Error("fingerprints do not tell keys apart")
	}
	if got := signature.Fingerprint("example.com+0a0b0c0d+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"); got != "no key" {
		t.Errorf("of a key with a wrong hash: %q", got)
	}
	if got := signature.Fingerprint(a); len(got) != 39 || strings.Trim(got, "0123456789abcdef-") != "" {
		t.Errorf("fingerprint %q", got)
	}
}

// A public key has one spelling, so that keys can be compared as texts.
func TestPublicKeysHaveOneForm(t *testing.T) {
	private, public := keys(t, "k")
	m := manifest(t, pdf())
	sig := sign(t, m, "pdf", private)
	name, rest, _ := strings.Cut(public, "+")
	hash, key, _ := strings.Cut(rest, "+")
	for _, other := range []string{
		"", private, public + "\n", " " + public, name + "+" + hash, "K+" + rest,
		name + "+" + strings.ToUpper("0x"+hash) + "+" + key,
		name + "+" + hash + "+" + key[:10] + "\r\n" + key[10:],
		strings.Repeat("k", 2000),
	} {
		if err := signature.Verify(m, "pdf", sig, other); err == nil {
			t.Errorf("%q is a public key", other)
		} else if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("the error tells the key: %v", err)
		}
	}
}

func TestPrivateKeyFiles(t *testing.T) {
	private, _ := keys(t, "example.com/tools")
	path := filepath.Join(t.TempDir(), "key")
	if _, err := signature.ReadPrivateKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read a missing file: %v", err)
	}
	if err := signature.WritePrivateKey(path, signature.PrivateKey{Private: "no key"}); err == nil {
		t.Error("something that is not a key was written")
	}
	if err := signature.WritePrivateKey(path, signature.PrivateKey{Private: private}); err != nil {
		t.Fatal(err)
	}
	if err := signature.WritePrivateKey(path, signature.PrivateKey{Private: private}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("write over a key: %v", err)
	}
	if got, err := signature.ReadPrivateKey(path); err != nil || got.Private != private {
		t.Errorf("ReadPrivateKey = %q, %v", got, err)
	}
	if _, err := signature.ReadPrivateKey(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}

	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := signature.ReadPrivateKey(path)
		if e, ok := errors.AsType[*signature.ExposedError](err); !ok || e.Mode != mode || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

func TestForeignPrivateKeyFiles(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	for name, content := range map[string]string{
		"empty":           "",
		"a public key":    public,
		"two keys":        private + "\n" + private,
		"a long file":     private + strings.Repeat(" ", 1<<20) + "x",
		"a key cut short": private[:len(private)-4],
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := signature.ReadPrivateKey(path); err == nil {
			t.Errorf("%s: read as %q", name, got)
		} else if strings.Contains(err.Error(), private[len(private)-20:]) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
}
