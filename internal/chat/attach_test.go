package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/exit"
)

// writeFiles writes files below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Files that the user names are attached up to a limit. Names without a file
// stay text, and other things are refused with a next step.
func TestAttach(t *testing.T) {
	a := &attacher{dir: t.TempDir(), home: t.TempDir()}
	writeFiles(t, a.dir, map[string]string{"a.txt": "one\ntwo\n", "sub/b.md": "```\ncode\n```\x1b[2J\u202e", "image.png": "\x89PNG\x00\x01", "latin.txt": "\xe9t\xe9",
		"long.txt": strings.Repeat("é", maxAttachedBytes), "empty": "", "crlf.txt": "one\r\ntwo\r\n"})
	a.agentDir = a.dir
	writeFiles(t, a.home, map[string]string{"notes.txt": "at home", "long.txt": strings.Repeat("x", maxAttachedBytes+1)})
	for _, tt := range []struct{ names, text, notice, err, hint string }{
		{names: "a.txt", text: "\n\nFile a.txt:\n\n```\none\ntwo\n```", notice: "attached a.txt (8 bytes)"},
		{names: "a.txt, sub/b.md).", text: "````\n```\ncode\n```[2J\n````", notice: "attached sub/b.md (19 bytes, 2 control or hidden characters removed)"},
		{names: "~/notes.txt", text: "at home", notice: "attached ~/notes.txt (7 bytes)"},
		{names: filepath.Join(a.home, "notes.txt"), text: "at home", notice: "(7 bytes)"},
		{names: "empty", text: "File empty:", notice: "attached empty (0 bytes)"},
		{names: "long.txt", text: "File long.txt (the first 65536 of 131072 bytes):", notice: "(the first 65536 of 131072 bytes); for the rest, ask the agent to read the file"},
		{names: "~/long.txt", text: "File ~/long.txt (the first", notice: "bytes); for the rest, start the chat with --workspace DIR"},
		{names: "crlf.txt", text: "one\ntwo", notice: "attached crlf.txt (10 bytes)"},
		{names: "ada missing.txt", notice: "no file missing.txt; @missing.txt is sent as text"},
		{names: "sub", err: "attach sub: is a directory", hint: "name a file in it"},
		{names: "image.png", err: "attach image.png: not UTF-8 text", hint: "--workspace"},
		{names: "latin.txt", err: "attach latin.txt: not UTF-8 text", hint: "--workspace"},
		{names: strings.Repeat("a.txt ", maxAttached+1), err: "too many files after @ (21, limit 20)", hint: "fewer"},
	} {
		text, notes, err := a.attach(t.Context(), strings.Fields(tt.names))
		var notices []string
		for _, n := range notes {
			notices = append(notices, n.Text)
			if whole := strings.HasPrefix(n.Text, "attached ") && strings.HasSuffix(n.Text, " bytes)"); n.Warning == whole && !strings.Contains(n.Text, "first") {
				t.Errorf("%s: warning %t", n.Text, n.Warning)
			}
		}
		hint := ""
		if e, ok := errors.AsType[*exit.Error](err); ok {
			hint = e.Hint
		}
		if !strings.Contains(text, tt.text) || tt.text == "" && text != "" || !strings.Contains(strings.Join(notices, "\n"), tt.notice) || fmt.Sprint(err) != tt.err && (tt.err != "" || err != nil) || !strings.Contains(hint, tt.hint) {
			t.Errorf("%.40s: %.200q, %q, %v (%s)", tt.names, text, notices, err, hint)
		}
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%.40s: the text has control characters", tt.names)
		}
	}
}

// In a conversation line by line, files of the working directory are attached too, if a
// message or the arguments of a skill name them. A file that cannot be attached stops
// the message.
func TestAttachInLines(t *testing.T) {
	u := newUser(t)
	project := filepath.Join(u.home, "project")
	writeFiles(t, project, map[string]string{"a.txt": "the content", "docs/b.txt": ""})
	d := u.open(&Flags{Workspace: project})
	for _, line := range []string{"hello @a.txt", "/tides @a.txt"} {
		u.stderr.Reset()
		if _, err := u.enter(d, line); err != nil || !strings.Contains(u.stderr.String(), "attached a.txt (11 bytes)") {
			t.Errorf("%s: %v, %q", line, err, u.stderr.String())
		}
	}
	said := 0
	for _, e := range d.session.Events(0) {
		if e.Message != nil && strings.Contains(e.Message.Text, "File a.txt:\n\n```\nthe content") {
			said++
		}
	}
	if said == 0 {
		t.Error("no message has the content")
	}
	before := len(d.session.Events(0))
	if _, err := u.enter(d, "hello @docs"); err == nil || len(d.session.Events(0)) != before {
		t.Errorf("with a directory: %v", err)
	}
}

// A pasted line cannot be recognized without a screen. It must not send a file that
// the agent cannot read by itself, whatever path leads there.
func TestPastedLineSendsNoOtherFiles(t *testing.T) {
	u := newUser(t)
	project := filepath.Join(u.home, "project")
	writeFiles(t, u.home, map[string]string{".ssh/id_ed25519": "SECRET", "here.txt": "SECRET", "project/own.txt": "of the project"})
	if err := os.Symlink(filepath.Join(u.home, ".ssh", "id_ed25519"), filepath.Join(project, "link.txt")); err != nil {
		t.Skip(err)
	}
	writeFiles(t, u.home, map[string]string{"datasets/a.csv": ""})
	if err := os.Symlink(filepath.Join(u.home, "datasets"), filepath.Join(project, "data")); err != nil {
		t.Skip(err)
	}
	t.Chdir(u.home)
	for _, workspace := range []string{"", project} {
		d := u.open(&Flags{Workspace: workspace})
		for _, name := range []string{"~/.ssh/id_ed25519", filepath.Join(u.home, ".ssh", "id_ed25519"), "../.ssh/id_ed25519", "~/.ssh", filepath.Join(project, "link.txt"), filepath.Join(u.home, "here.txt") + ".", "here.txt",
			project + "/data/../.ssh/id_ed25519", project + "/data/../.ssh"} {
			u.stderr.Reset()
			if _, err := u.enter(d, "Please explain @"+name); err != nil {
				t.Errorf("%q, %s: %v", workspace, name, err)
			}
			if said := u.stderr.String(); !strings.Contains(said, "is not attached: without a screen") && !strings.Contains(said, "no file ") {
				t.Errorf("%q, %s: the notes are %q", workspace, name, said)
			}
		}
		for _, e := range d.session.Events(0) {
			if e.Message != nil && strings.Contains(e.Message.Text, "SECRET") {
				t.Errorf("%q: sent %q", workspace, e.Message.Text)
			}
		}
	}
}

// A read that does not return ends with its context, and only some of them may be
// pending.
func TestAwaitRead(t *testing.T) {
	release := make(chan struct{})
	blocked := func() (int, error) {
		<-release
		return 1, nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	for range maxPendingReads {
		if _, err := awaitRead(ctx, blocked); !errors.Is(err, stopped) {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := awaitRead(t.Context(), blocked); err == nil || !strings.Contains(err.Error(), "too many files do not respond") {
		t.Errorf("the error is %v", err)
	}
	close(release)
	for range maxPendingReads { // all have returned if all elements can be taken
		pendingReads <- struct{}{}
	}
	for range maxPendingReads {
		<-pendingReads
	}
	if got, err := awaitRead(t.Context(), blocked); got != 1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// Completion finds a file in a large directory, and a near one behind a large
// directory. It offers no broken links.
func TestCompleteInLargeDirectories(t *testing.T) {
	a := &attacher{dir: t.TempDir()}
	files := map[string]string{"big/target.txt": "", "z/near-target.txt": "", "big/a/b/c/d/e/f/target-far.txt": ""}
	for i := range 6000 {
		files[fmt.Sprintf("big/%05d.txt", i)] = ""
	}
	writeFiles(t, a.dir, files)
	if err := os.Symlink("none", filepath.Join(a.dir, "target-broken")); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"big/t": "big/target.txt", "target": "big/target.txt z/near-target.txt big/a/b/c/d/e/f/target-far.txt"} {
		var got []string
		for _, c := range a.complete(typed) {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

// Completion offers the entries of a directory first, and then files below it.
// It does not look into directories such as .git, and offers no binary files.
func TestCompleteFile(t *testing.T) {
	a := &attacher{dir: t.TempDir(), home: t.TempDir()}
	writeFiles(t, a.dir, map[string]string{"bin/tool": "\x7fELF\x00", "bin/tone": strings.Repeat("é", maxTypeBytes) + "\x00", "bin/tor": "é", "bin/torn": strings.Repeat("a", maxTypeBytes-1) + "é", "bin/to.png": "", "bin/to.json": "", "README.md": "", "docs/readme.txt": "", "docs/other.md": "", ".git/readme": "", "node_modules/x/readme.js": "", ".env": "", "bad\u202eread": "", "with space.txt": ""})
	writeFiles(t, a.home, map[string]string{"notes.txt": ""})
	for typed, want := range map[string]string{
		"rea":    "README.md docs/readme.txt",
		"docs/":  "docs/other.md docs/readme.txt",
		"docs/r": "docs/readme.txt",
		"DO":     "docs/",
		".":      ".env",
		".g":     "",
		"~/":     "~/notes.txt",
		"other":  "docs/other.md",
		"none/x": "",
		"with s": "with space.txt",
		"bin/to": "bin/to.json bin/tone bin/tor bin/torn",
		"tool":   "",
	} {
		var got []string
		for _, c := range a.complete(typed) {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

// Completion does not wait for files that do not respond, and does not read the
// files of the kernel, which have size 0: reading some of them removes data.
func TestCompletionDoesNotWait(t *testing.T) {
	a := &attacher{dir: t.TempDir()}
	writeFiles(t, a.dir, map[string]string{"tool": "\x7fELF\x00"})
	const kernel = "/proc/self/cmdline" // contains NUL bytes
	if data, err := os.ReadFile(kernel); err == nil && strings.Contains(string(data), "\x00") {
		if offered := a.complete(kernel); len(offered) != 1 {
			t.Errorf("%s: offered %v", kernel, offered)
		}
	}
	if offered := a.complete("to"); len(offered) != 0 {
		t.Errorf("offered the binary file %v", offered)
	}
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range maxPendingReads {
		awaitRead(ctx, func() (int, error) { <-release; return 0, nil })
	}
	if offered := a.complete("to"); len(offered) != 1 {
		t.Errorf("while other files do not respond: offered %v", offered)
	}
	close(release)
	for range maxPendingReads { // all have returned if all elements can be taken
		pendingReads <- struct{}{}
	}
	for range maxPendingReads {
		<-pendingReads
	}
	if offered := a.complete("to"); len(offered) != 1 {
		t.Errorf("after files did not respond: offered %v", offered)
	}
}
