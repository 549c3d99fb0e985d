//go:build unix

package direct_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/direct"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/sandbox"
)

func start(t *testing.T, o direct.Options) *direct.Sandbox {
	t.Helper()
	o.Dir = rundir.Options{Backend: "direct", Parent: t.TempDir()}
	s, err := direct.Start(&sandbox.Spec{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// run runs a shell command with an input.
func run(t *testing.T, s *direct.Sandbox, script, input string) (stdout, stderr string, exit sandbox.Exit) {
	t.Helper()
	p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(p.Stdin(), input)
	p.Stdin().Close()
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Error(err)
	}
	problems, err := io.ReadAll(p.Stderr())
	if err != nil {
		t.Error(err)
	}
	return string(out), string(problems), p.Wait()
}

func TestCommands(t *testing.T) {
	s := start(t, direct.Options{Enforced: map[string]string{"file_size": "RLIMIT_FSIZE"}})
	for _, tt := range []struct {
		script, input, stdout, stderr string
		code                          int
		reason                        sandbox.Reason
		signal                        string
	}{
		{"cat", "text", "text", "", 0, sandbox.OK, ""}, {"echo bad >&2; exit 3", "", "", "bad\n", 3, sandbox.Exited, ""}, {"kill -TERM $$", "", "", "", 128 + 15, sandbox.Exited, "SIGTERM"},
	} {
		out, problems, exit := run(t, s, tt.script, tt.input)
		if out != tt.stdout || problems != tt.stderr || exit.Code != tt.code || exit.Reason != tt.reason || exit.Signal != tt.signal || exit.MaxRSS < 100<<10 {
			t.Errorf("%s: %q, %q, %+v", tt.script, out, problems, exit)
		}
	}
	run(t, s, "echo kept > file", "")
	var files []string
	err := s.Collect(t.Context(), func(f sandbox.File, r io.Reader) error {
		text, err := io.ReadAll(r)
		files = append(files, f.Path+": "+string(text))
		return err
	})
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], "file: kept\n") {
		t.Errorf("%q, %v", files, err)
	}
	if st := s.State(); st.Enforced["file_size"] != "RLIMIT_FSIZE" || st.Denied != nil {
		t.Errorf("%+v", st)
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	s := start(t, direct.Options{})
	for _, args := range [][]string{nil, {""}} {
		if _, err := s.Exec(t.Context(), &sandbox.Cmd{Args: args}); err == nil {
			t.Errorf("%q was started", args)
		}
	}
	for _, program := range []string{"no-such-program", "/no/such/program"} {
		_, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{program}})
		if e, ok := errors.AsType[*sandbox.StartError](err); !ok || e.Program != program || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// Close kills what runs, with its children, and removes the directory.
func TestClose(t *testing.T) {
	closed := 0
	s := start(t, direct.Options{OnClose: func() { closed++ }, Denied: func() []string { return []string{"example.com"} }})
	if st := s.State(); len(st.Denied) != 1 {
		t.Errorf("%+v", st)
	}
	p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", "sleep 1000 & echo started; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout(), make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	dir := s.Dir().Root
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Signal != "SIGKILL" || exit.Code != 128+9 {
		t.Errorf("%+v", exit)
	}
	if rest, err := io.ReadAll(p.Stdout()); err != nil || len(rest) > 0 { // ends when no child has it any more
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "work")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains: %v", dir, err)
	}
	if err := s.Close(); err != nil || closed != 1 {
		t.Errorf("closed again: %v, %d calls", err, closed)
	}
	if _, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"true"}}); err == nil {
		t.Error("a command was started after the end")
	}
}

func TestWrap(t *testing.T) {
	s := start(t, direct.Options{Wrap: func(_ *rundir.Dir, args []string) []string {
		return append([]string{"/usr/bin/env", "WRAPPED=yes"}, args...)
	}})
	if out, _, _ := run(t, s, "echo $WRAPPED", ""); out != "yes\n" {
		t.Errorf("%q", out)
	}
}
