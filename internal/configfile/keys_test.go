package configfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/configfile"
)

// Keys in quotes are found by what they mean, so their values have positions.
func TestTOMLKeysWithEscapes(t *testing.T) {
	src := "[\"a\\u0062c\".'d\\e']\n\"x\\ty\" = 1\n\"q\\\"r\" . s=2\nz=3"
	docs, err := configfile.Parse([]byte(src), configfile.FormatOf("a.toml", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{abc@1:1={d\e@1:1={x	y@2:1=n:1@2:1 q"r@3:1={s@3:1=n:2@3:1}@3:1 z@4:1=n:3@4:1}@1:1}@1:1}@1:1`
	if got := show(docs[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGet(t *testing.T) {
	docs, err := configfile.Parse([]byte(`{"a":1,"b":"x","a":true,"c":null,"d":[],"e":{}}`), configfile.FormatOf("a.json", nil))
	if err != nil {
		t.Fatal(err)
	}
	n := docs[0]
	if got := n.Get("a"); got == nil || got.Text != "true" {
		t.Errorf("the last of two is %+v", got)
	}
	for key, scalar := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "e": false, "none": false} {
		if got := n.Get(key).IsScalar(); got != scalar {
			t.Errorf("%s is a scalar: %t", key, got)
		}
	}
	var none *configfile.Node
	if none.Get("a") != nil || none.IsScalar() || n.Get("b").Get("x") != nil {
		t.Error("what does not exist has values")
	}
	if fields, passed := n.UniqueFields(); len(fields) != 5 || len(passed) != 1 || passed[0].Key != "a" || passed[0].Value.Text != "1" {
		t.Errorf("%d fields, passed %+v", len(fields), passed)
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, ok := range map[int64]bool{4: false, 5: true, 6: true} {
		if data, err := configfile.ReadFile(path, limit); (err == nil) != ok || ok && string(data) != "12345" {
			t.Errorf("limit %d: %q, %v", limit, data, err)
		}
	}
	if _, err := configfile.ReadFile(filepath.Join(dir, "none"), 9); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := configfile.ReadFile(dir, 9); err == nil || !strings.Contains(err.Error(), "got a directory") {
		t.Errorf("a directory: %v", err)
	}
	if runtime.GOOS == "linux" { // /dev/null stands for a device
		const pipe = os.DevNull
		if _, err := configfile.ReadFile(pipe, 9); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("a device: %v", err)
		}
	}
}
