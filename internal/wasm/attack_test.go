package wasm_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// These are the cases G1 to G10 of the attack suite. Each has a control: the same guest where nothing stops it, which
// shows that the case can fail.

const secret = "what no guest may read"

// outside returns a directory with a secret, and a directory work inside it for
// the guest.
func outside(t *testing.T) (dir, work string) {
	t.Helper()
	dir = t.TempDir()
	work = filepath.Join(dir, "work")
	must(t, os.Mkdir(work, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "secret.txt"), []byte(secret), 0o644))
	return dir, work
}

// plain runs the Go guest in wazero as its documentation shows it. changes sets up the case.
func plain(t *testing.T, ctx context.Context, changes func(wazero.ModuleConfig) wazero.ModuleConfig, args ...string) (string, error) {
	t.Helper()
	path, dir := guest(t)
	module, err := os.ReadFile(path)
	must(t, err)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	must(t, err)
	defer cache.Close(context.Background())
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache).
		WithCloseOnContextDone(true).WithDebugInfoEnabled(false))
	defer r.Close(context.Background())
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out strings.Builder
	config := changes(wazero.NewModuleConfig().WithStdout(&out).WithArgs(append([]string{"guest"}, args...)...))
	_, err = r.InstantiateWithConfig(ctx, module, config)
	return out.String(), err
}

func dirMount(dir string) func(wazero.ModuleConfig) wazero.ModuleConfig {
	return func(c wazero.ModuleConfig) wazero.ModuleConfig {
		return c.WithFSConfig(wazero.NewFSConfig().WithDirMount(dir, "/work"))
	}
}

func TestG01AbsolutePath(t *testing.T) {
	dir, work := outside(t)
	for _, path := range []string{filepath.Join(dir, "secret.txt"), "/secret.txt", "/etc/passwd"} {
		expect(t, run(t, "--dir", "/work="+work, "--", "read", path), 3, "", path)
		expect(t, run(t, "--", "read", path), 3, "", path)
	}
	expect(t, run(t, "--dir", "/="+dir, "--", "read", "/secret.txt"), 0, secret, "") // control
}

func TestG02ParentPath(t *testing.T) {
	dir, work := outside(t)
	for _, path := range []string{"/work/../secret.txt", "../secret.txt", "/work/none/../../secret.txt"} {
		expect(t, run(t, "--dir", "/work="+work, "--", "read", path), 3, "", "secret.txt")
		expect(t, run(t, "--dir", "/work="+work, "--", "write", path, "x"), 3, "", "secret.txt")
	}
	// Without the Go runtime, which cleans paths itself. 63 is EPERM.
	module := file(t, assemble(escape))
	expect(t, worker(t, "--dir", "/work="+work, "--", module), 63, "", "")
	if b, _ := os.ReadFile(filepath.Join(dir, "secret.txt")); string(b) != secret {
		t.Errorf("the secret is now %q", b)
	}
	// control: the same call with a path inside succeeds
	inside := filepath.Join(work, "..secret.txt")
	must(t, os.WriteFile(inside, nil, 0o600))
	ok := []byte(strings.Replace(string(assemble(escape)), text, "..secret.txt\x00", 1))
	ok = []byte(strings.Replace(string(ok), string(i32(int64(len(text)))), string(i32(int64(len(text)-1))), 1))
	expect(t, worker(t, "--dir", "/work="+work, "--", file(t, ok)), 0, "", "")
}

func TestG03Environment(t *testing.T) {
	t.Setenv("LOADOUT_TEST_SECRET", secret)
	expect(t, run(t, "--", "env"), 0, "[]\n", "")
	r := workerWith(t, nil, os.Environ(), guestArgs(t, "--", "env")...) // control
	if r.code != 0 || !strings.Contains(r.out, secret) {
		t.Errorf("the guest does not see what it is given: %d, %q", r.code, r.err)
	}
	expect(t, run(t, "--", "net"), 0, "no network\n", "")
}

func TestG04MakeLink(t *testing.T) {
	_, work := outside(t)
	for i, target := range []string{"../secret.txt", filepath.Join(work, "../secret.txt")} {
		link := "/work/link" + string(rune('0'+i))
		expect(t, run(t, "--dir", "/work="+work, "--", "linkread", target, link), 3, "", "not permitted")
	}
	if list, _ := os.ReadDir(work); len(list) != 0 {
		t.Errorf("made %v", list)
	}
	out, err := plain(t, t.Context(), dirMount(work), "linkread", "../secret.txt", "/work/link") // control
	if err != nil || out != secret {
		t.Logf("control: wazero's directory mount holds by now: %q, %v", out, err)
	}
}

func TestG05ShippedLink(t *testing.T) {
	dir, work := outside(t)
	symlink(t, "../secret.txt", filepath.Join(work, "file"))
	symlink(t, "..", filepath.Join(work, "up"))
	symlink(t, dir, filepath.Join(work, "absolute"))
	for _, mode := range []string{"", ":ro"} {
		for _, path := range []string{"/work/file", "/work/up/secret.txt", "/work/absolute/secret.txt"} {
			expect(t, run(t, "--dir", "/work="+work+mode, "--", "read", path), 3, "", path)
			expect(t, run(t, "--dir", "/work="+work+mode, "--", "write", path, "x"), 3, "", path)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "secret.txt")); string(b) != secret {
		t.Errorf("the secret is now %q", b)
	}
	out, err := plain(t, t.Context(), dirMount(work), "read", "/work/file") // control
	if err != nil || out != secret {
		t.Logf("control: wazero's directory mount holds by now: %q, %v", out, err)
	}
}

func TestG06Endless(t *testing.T) {
	for name, module := range map[string][]byte{
		"loop":                  assemble(forever),
		"loop in start section": assemble(forever, startSection),
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, worker(t, "--timeout", "200ms", "--", file(t, module)), 124, "", "timeout")
		})
	}
	t.Run("loop in Go", func(t *testing.T) {
		expect(t, run(t, "--timeout", "1s", "--", "loop"), 124, "", "timeout")
	})
	t.Run("recursion", func(t *testing.T) {
		expect(t, worker(t, "--", file(t, assemble(recursion))), 134, "", "stack overflow")
	})
	t.Run("recursion in Go", func(t *testing.T) {
		r := run(t, "--memory", "67108864", "--", "recurse")
		if r.code != 2 && r.code != 134 || r.out != "" {
			t.Errorf("got %d, %q", r.code, r.out)
		}
	})
	// There is no control, because a loop that never ends takes forever to show.
}

func TestG07Sleep(t *testing.T) {
	start := time.Now()
	expect(t, run(t, "--timeout", "500ms", "--", "sleep", "60s"), 124, "", "timeout")
	if elapsed := time.Since(start); elapsed > 30*time.Second {
		t.Errorf("took %v", elapsed)
	}
	expect(t, run(t, "--", "sleep", "10ms"), 0, "slept\n", "")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // control
	defer cancel()
	start = time.Now()
	_, err := plain(t, ctx, func(c wazero.ModuleConfig) wazero.ModuleConfig {
		return c.WithSysNanotime().WithSysNanosleep()
	}, "sleep", "1500ms")
	if elapsed := time.Since(start); err == nil || elapsed < 1500*time.Millisecond {
		t.Logf("control: wazero's own sleep heeds the context by now: %v after %v", err, elapsed)
	}
}

// TestG07Input tests a guest that waits for input: wazero cannot stop a read.
func TestG07Input(t *testing.T) {
	t.Run("reader", func(t *testing.T) {
		in, nobody := io.Pipe()
		defer nobody.Close() // lets the guest go that was left behind
		expect(t, workerWith(t, in, nil, guestArgs(t, "--timeout", "500ms", "--", "upper")...), 124, "", "timeout")
	})
	t.Run("pipe", func(t *testing.T) {
		in, nobody, err := os.Pipe()
		must(t, err)
		defer in.Close()
		defer nobody.Close()
		expect(t, workerWith(t, in, nil, guestArgs(t, "--timeout", "500ms", "--", "upper")...), 124, "", "timeout")
	})
}

// deaf is a stream that takes nothing and counts how often it is asked.
type deaf struct{ writes int }

func (d *deaf) Write([]byte) (int, error) { d.writes++; return 0, errors.New("full") }

func TestG08Output(t *testing.T) {
	const limit = 100_000
	r := run(t, "--output", "100000", "--", "flood")
	expect(t, r, 125, strings.Repeat("x", limit), "output limit")
	expect(t, run(t, "--output", "6", "--", "hello"), 0, "hello\n", "")
	expect(t, run(t, "--output", "5", "--", "hello"), 125, "hello", "output limit")
	expect(t, run(t, "--output", "0", "--", "hello"), 0, "hello\n", "")

	var d deaf // control
	_, err := plain(t, t.Context(), func(c wazero.ModuleConfig) wazero.ModuleConfig { return c.WithStdout(&d) }, "flood")
	if d.writes < 100 {
		t.Logf("control: the guest heeds the error of a write by now: %d writes, %v", d.writes, err)
	}
}

func TestG09Memory(t *testing.T) {
	const pages = 400 << 20 >> 16
	module := file(t, assemble(grow(pages)))
	expect(t, worker(t, "--memory", "268435456", "--", module), 9, "", "")
	expect(t, worker(t, "--memory", "536870912", "--", module), 0, "", "") // control
	r := run(t, "--memory", "268435456", "--", "alloc", "400")
	if r.code != 2 || r.out != "" || !strings.Contains(r.err, "out of memory") {
		t.Errorf("got %d, %q, %.200q", r.code, r.out, r.err)
	}
	expect(t, run(t, "--memory", "268435456", "--", "alloc", "64"), 0, "allocated\n", "") // control
	// A module that starts with more than the limit is not started.
	large := cat([]byte("\x00asm\x01\x00\x00\x00"), section(5, vec([]byte{0, 0x81, 0x20})))
	expect(t, worker(t, "--memory", "268435456", "--", file(t, large)), 126, "", "memory")
}

func TestG10CompileBomb(t *testing.T) {
	large := file(t, bomb(1000, 300))
	expect(t, worker(t, "--timeout", "300ms", "--", large), 124, "", "timeout")
	dir := t.TempDir()
	expect(t, worker(t, "--compile", "--cache", dir, "--timeout", "300ms", "--", large), 124, "", "timeout")
	if codes, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(codes) != 0 {
		t.Errorf("half compiled: %v", codes)
	}
	expect(t, worker(t, "--timeout", "0", "--", file(t, bomb(3, 300))), 0, "", "") // control
}
