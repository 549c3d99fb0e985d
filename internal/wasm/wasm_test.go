package wasm_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/testprogram"
	"github.com/loadout-dev/loadout/internal/wasm"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	if code == 0 {
		// A guest that was left behind ends when its host function or the compiler's current function returns.
		err := goleak.Find()
		for start := time.Now(); err != nil && time.Since(start) < 30*time.Second; {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// built is testdata/guest, built and compiled once.
var built struct {
	once   sync.Once
	dir    string
	module string
	cache  string
}

// guest returns the path of the Go guest and the directory of its compiled
// code.
func guest(t testing.TB) (module, cache string) {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "loadout-wasm-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
		path := filepath.Join(dir, "guest.wasm")
		program := testprogram.Program{Package: "internal/wasm/testdata/guest", Env: []string{"GOOS=wasip1", "GOARCH=wasm"}}
		if err := program.Install(path); err != nil {
			t.Fatal(err)
		}
		cache := filepath.Join(dir, "cache")
		if r := worker(t, "--compile", "--cache", cache, "--", path); r.code != 0 {
			t.Fatalf("compile the guest: %+v", r)
		}
		built.module, built.cache = path, cache
	})
	if built.module == "" {
		t.Fatal("the guest was not built")
	}
	return built.module, built.cache
}

// ioResult is the result of a run of the worker.
type ioResult struct {
	code     int
	out, err string
}

// worker runs Main without stdin and environment.
func worker(t testing.TB, args ...string) ioResult {
	t.Helper()
	return workerWith(t, strings.NewReader(""), nil, args...)
}

func workerWith(t testing.TB, stdin io.Reader, environ []string, args ...string) (r ioResult) {
	t.Helper()
	// The default minute is short for the compiler under the race detector on a busy machine. A later --timeout counts.
	args = append([]string{"--timeout", "10m"}, args...)
	var out, errOut bytes.Buffer
	r.code = wasm.Main(args, stdin, &out, &errOut, environ)
	r.out, r.err = out.String(), errOut.String()
	return r
}

// run runs the Go guest: options of the worker, "--", arguments of the guest.
func run(t testing.TB, args ...string) ioResult {
	t.Helper()
	return worker(t, guestArgs(t, args...)...)
}

func guestArgs(t testing.TB, args ...string) []string {
	t.Helper()
	module, cache := guest(t)
	var all []string
	for i, a := range args {
		if a == "--" {
			all = append(append(all, args[:i]...), "--cache", cache, "--", module)
			return append(all, args[i+1:]...)
		}
	}
	t.Fatal("no -- in the arguments")
	return nil
}

// file writes a module to a file and returns its path.
func file(t testing.TB, module []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(name, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func expect(t *testing.T, r ioResult, code int, out, errPart string) {
	t.Helper()
	if r.code != code || r.out != out || !strings.Contains(r.err, errPart) || errPart == "" && r.err != "" {
		t.Errorf("got %d, stdout %.300q, stderr %.900q; want %d, %q, %q in stderr", r.code, r.out, r.err, code, out, errPart)
	}
}

func TestCommand(t *testing.T) {
	module, _ := guest(t)
	t.Run("arguments", func(t *testing.T) {
		r := run(t, "--", "args", "", "a b", "--memory", "--")
		expect(t, r, 0, fmt.Sprintf("%q\n", []string{module, "args", "", "a b", "--memory", "--"}), "")
	})
	t.Run("environment", func(t *testing.T) {
		r := workerWith(t, nil, []string{"LOADOUT_SKILL=/skill", "EMPTY=", "=C:=x", "nonsense", "EQ=a=b"}, guestArgs(t, "--", "env")...)
		expect(t, r, 0, `["EMPTY=" "EQ=a=b" "LOADOUT_SKILL=/skill"]`+"\n", "")
	})
	t.Run("stdin", func(t *testing.T) {
		in := strings.Repeat("some input ", 20_000)
		r := workerWith(t, strings.NewReader(in), nil, guestArgs(t, "--", "upper")...)
		expect(t, r, 0, strings.ToUpper(in), "")
	})
	t.Run("exit code", func(t *testing.T) {
		for arg, want := range map[string]int{"0": 0, "1": 1, "42": 42, "124": 124, "255": 255, "256": 255, "-1": 255} {
			expect(t, run(t, "--", "exit", arg), want, "", "")
		}
	})
	t.Run("stderr", func(t *testing.T) {
		expect(t, run(t, "--", "read", "/none"), 3, "", "/none")
	})
	t.Run("panic", func(t *testing.T) {
		expect(t, run(t, "--", "panic"), 2, "", "assignment to entry in nil map")
	})
	t.Run("no cache", func(t *testing.T) {
		expect(t, worker(t, "--", module, "hello"), 0, "hello\n", "")
	})
}

func TestFiles(t *testing.T) {
	work := t.TempDir()
	expect(t, run(t, "--dir", "/work="+work, "--", "files", "/work"), 0, "all well\n", "")
	b, err := os.ReadFile(filepath.Join(work, "result.txt"))
	if string(b) != "kept" || err != nil {
		t.Errorf("result: %q, %v", b, err)
	}
	if list, _ := os.ReadDir(work); len(list) != 2 { // a and result.txt
		t.Errorf("left behind: %v", list)
	}

	t.Run("relative", func(t *testing.T) { // the first mount is the working directory
		expect(t, run(t, "--dir", "/work="+work, "--dir", "/tmp="+t.TempDir(), "--", "read", "result.txt"), 0, "kept", "")
	})
	t.Run("read-only", func(t *testing.T) {
		skill := t.TempDir()
		must(t, os.WriteFile(filepath.Join(skill, "f"), []byte("as it was"), 0o644))
		must(t, os.Mkdir(filepath.Join(skill, "d"), 0o755))
		expect(t, run(t, "--dir", "/skill="+skill+":ro", "--", "readonly", "/skill"), 0, "as it was\n", "")
		// The same guest finds a writable mount to be one.
		expect(t, run(t, "--dir", "/skill="+skill, "--", "readonly", "/skill"), 3, "", "worked")
	})
	t.Run("link inside", func(t *testing.T) {
		symlink(t, "result.txt", filepath.Join(work, "link"))
		expect(t, run(t, "--dir", "/work="+work, "--", "read", "/work/link"), 0, "kept", "")
	})
}

func TestRefused(t *testing.T) {
	good := file(t, assemble(nop))
	dir := t.TempDir()
	big := filepath.Join(dir, "big.wasm")
	must(t, os.WriteFile(big, assemble(nop), 0o600))
	must(t, os.Truncate(big, wasm.MaxModule+1))
	foreign := cat([]byte("\x00asm\x01\x00\x00\x00"), section(1, vec([]byte{0x60, 0, 0})),
		section(2, vec(cat(str("env"), str("system"), []byte{0, 0}))), section(3, vec([]byte{0})),
		section(7, vec(cat(str("_start"), []byte{0, 1}))), section(10, vec([]byte{2, 0, 0x0b})))
	const head = "\x00asm\x01\x00\x00\x00"
	for name, c := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"nothing":        {nil, 125, "missing module"},
		"unknown option": {[]string{"--net", "--", good}, 125, "-net"},
		"memory":         {[]string{"--memory", "5", "--", good}, 125, "--memory"},
		"mount twice":    {[]string{"--dir", "/a=" + dir, "--dir", "/a=" + dir, "--", good}, 125, "duplicate --dir"},
		"mount relative": {[]string{"--dir", "a=" + dir, "--", good}, 125, "absolute"},
		"mount dots":     {[]string{"--dir", "/a/..=" + dir, "--", good}, 125, "absolute"},
		"mount missing":  {[]string{"--dir", "/a=" + filepath.Join(dir, "none"), "--", good}, 125, "mount /a"},
		"compile where":  {[]string{"--compile", "--", good}, 125, "--cache"},
		"missing":        {[]string{"--", filepath.Join(dir, "none.wasm")}, 126, "none.wasm"},
		"directory":      {[]string{"--", dir}, 126, "not a regular file"},
		"empty":          {[]string{"--", file(t, nil)}, 126, "not a WebAssembly module"},
		"script":         {[]string{"--", file(t, []byte("#!/bin/sh\n"))}, 126, "not a WebAssembly module"},
		"component":      {[]string{"--", file(t, []byte("\x00asm\x0d\x00\x01\x00"))}, 126, "component"},
		"truncated":      {[]string{"--", file(t, assemble(nop)[:60])}, 126, "invalid module"},
		"too large":      {[]string{"--", big}, 126, "too large"},
		"no _start":      {[]string{"--", file(t, []byte(head))}, 126, "_start"},
		"foreign import": {[]string{"--", file(t, foreign)}, 126, "env"},
		"many types":     {[]string{"--", file(t, cat([]byte(head), section(1, uleb(1<<32-1))))}, 126, "exceeds the end of the module"},
		"many locals":    {[]string{"--", file(t, assemble(nop, section(10, vec(cat(uleb(7), uleb(1), uleb(1<<32-1), []byte{0x7f})))))}, 126, "local variables"},
		"many names":     {[]string{"--", file(t, cat([]byte(head), section(0, cat(str("name"), section(1, uleb(1<<32-1))))))}, 126, "exceeds the end of the module"},
	} {
		t.Run(name, func(t *testing.T) {
			r := worker(t, c.args...)
			expect(t, r, c.code, "", c.err)
			if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "loadout wasm: ") {
				t.Errorf("not one line: %q", r.err)
			}
		})
	}
}

func TestAssembled(t *testing.T) {
	name := section(0, cat(str("name"), section(0, str("wasi_snapshot_preview1"))))
	for what, c := range map[string]struct {
		module []byte
		code   int
		err    string
	}{
		"nothing":                 {assemble(nop), 0, ""},
		"exit code":               {assemble(exit(7)), 7, ""},
		"large exit code":         {assemble(exit(0x100)), 255, ""},
		"the code of a timeout":   {assemble(exit(0xefffffff - 1<<32)), 255, ""},
		"trap":                    {assemble(unreachable), 134, "unreachable"},
		"trap in start section":   {assemble(unreachable, startSection), 126, "unreachable"},
		"exit in start section":   {assemble(exit(5), startSection), 5, ""},
		"named as the host":       {cat(assemble(nop), name), 0, ""},
		"file table of 2^31 rows": {assemble(renumber), 58, ""}, // ENOTSUP; wazero's own says EBADF for a file not open
	} {
		t.Run(what, func(t *testing.T) { expect(t, worker(t, "--", file(t, c.module)), c.code, "", c.err) })
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip("links cannot be made here:", err)
	}
}
