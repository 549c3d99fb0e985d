//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/console"
)

// pane is loadout in a terminal of tmux, which shows what a user would see.
type pane struct {
	*testing.T
	socket string
	home   string
}

// openPane starts loadout chat in a terminal of so many columns. What it works on is in
// home.
func openPane(t *testing.T, columns int, home string, env []string, args ...string) *pane {
	t.Helper()
	return openTerminal(t, columns, home, env, append([]string{"chat"}, args...)...)
}

// openTerminal is like openPane for any command of loadout. The terminal echoes typed
// text, like that of a user: a progress line begins below the answer to a prompt.
func openTerminal(t *testing.T, columns int, home string, env []string, args ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("LOADOUT_TEST_SCREEN") != "" { // as test/run has it, which installs it
			t.Fatal("tmux is not installed, and these tests must run here")
		}
		t.Skip("tmux is not installed: nothing shows the screen")
	}
	exe, err := exec.LookPath("loadout")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tmux") // a socket has a short path
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{T: t, socket: filepath.Join(dir, "s"), home: home}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", p.socket, "kill-server").Run() // it may have ended
		os.RemoveAll(dir)
	})
	command := []string{"env", "-i", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=screen-256color", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"}
	command = append(append(append(command, env...), exe), args...)
	for i, word := range command {
		command[i] = console.ShellQuote(word)
	}
	p.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", "30", "-c", home, "sh")
	p.tmux("set-option", "-g", "status", "off")
	p.tmux("set-option", "-g", "history-limit", "5000")
	p.tmux("send-keys", "-l", "PS1='$ '; stty -echo; clear; stty echo; "+strings.Join(command, " ")+"; code=$?; stty -echo; echo; echo left with $code; stty -a | tr ' ' '\\n' | grep -x -e icanon -e isig")
	p.tmux("send-keys", "Enter")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// types sends text, and then keys by their names in tmux.
func (p *pane) types(text string, keys ...string) {
	p.Helper()
	if text != "" {
		p.tmux("send-keys", "-l", text)
	}
	for _, k := range keys {
		p.tmux("send-keys", k)
	}
}

// shows returns the screen and the scrollback, once they contain a text and no longer
// change.
func (p *pane) shows(text string) string {
	p.Helper()
	return p.waitFor(text, func(string) bool { return true })
}

// ends is like shows, but also waits for the prompt of the shell: what follows a command
// may take longer to appear than shows waits for.
func (p *pane) ends(text string) string {
	p.Helper()
	return p.waitFor(text, func(screen string) bool { return strings.HasSuffix(screen, "\n$") })
}

func (p *pane) waitFor(text string, complete func(screen string) bool) string {
	p.Helper()
	before, now := "", ""
	for range 600 {
		time.Sleep(50 * time.Millisecond)
		before, now = now, strings.TrimRight(p.tmux("capture-pane", "-p", "-S", "-", "-J"), "\n ")
		if strings.Contains(now, text) && now == before && complete(now) {
			return steady(now)
		}
	}
	p.Fatalf("there is no %q on the screen, or it is not complete:\n%s", text, now)
	return ""
}

// varying are what differs between two runs of one conversation.
var varying = []struct {
	is  *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]{5}`), "YYYYMMDD-HHMMSS-xxxxx"},
	{regexp.MustCompile(`localhost-\d{5}`), "localhost-00000"},
	{regexp.MustCompile(`  \d+(\.\d)? s\b`), ""},
	{regexp.MustCompile(`(?m)^([✓✗] \S+ \S[^…\n]{0,9}).*$`), "$1…"}, // how long a call took moves where its line is cut
	{regexp.MustCompile(`[0-9.]+[kM]? tokens`), "some tokens"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

func steady(screen string) string {
	for _, v := range varying {
		screen = v.is.ReplaceAllString(screen, v.say)
	}
	return screen + "\n"
}

// golden waits until the screen contains a text and equals the one in testdata/screen.
func (p *pane) golden(name, text string) {
	p.Helper()
	path := filepath.Join("testdata", "screen", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(p.shows(text)), 0o644); err != nil {
			p.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	want := strings.TrimSuffix(steady(string(kept)), "\n") // mark variable parts of earlier screens, too
	got := p.shows(text)
	for range 600 {
		if got == want {
			return
		}
		time.Sleep(50 * time.Millisecond) // more may come
		got = p.screen()
	}
	p.Errorf("%s is\n%s\nwant\n%s", name, got, want)
}

// screen is all that is on the screen and in the scrollback now, without what varies.
func (p *pane) screen() string {
	p.Helper()
	return steady(strings.TrimRight(p.tmux("capture-pane", "-p", "-S", "-", "-J"), "\n "))
}

// harbourHome is a home with one skill.
func harbourHome(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	dir := filepath.Join(home, "skills", "tides")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: tides\ndescription: Reads tide tables for harbours, and says when the water is high.\nargument-hint: HARBOUR\n---\nAdd one hour in **summer**.\n"
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return home
}

// A conversation with the demo model: a skill is loaded, commands are completed, and the
// terminal is restored at the end.
func TestConversationScreen(t *testing.T) {
	for _, columns := range []int{80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			p := openPane(t, columns, harbourHome(t), nil, "--skills", "skills", "--model", "demo")
			p.shows("Message…")
			p.types("use the skill tides", "Enter")
			p.shows("OPENAI_API_KEY.")
			p.types("/skills", "Enter")
			p.shows("Skills (1)")
			p.types("/help tides", "Enter")
			p.shows("usage: /tides HARBOUR")
			p.types("/tides Kiel", "Enter")
			p.shows("Arguments: Kiel")
			p.types("/ti")
			p.golden(fmt.Sprintf("conversation-%d", columns), "› /tides")
			p.types("", "C-c", "C-c", "C-c")
			end := p.ends("left with 0")
			if !strings.Contains(end, "icanon") || !strings.Contains(end, "isig") {
				t.Errorf("the terminal is not as it was:\n%s", end)
			}
		})
	}
}

// The user is prompted for changes of files, sees the diff, edits the arguments, and
// declines. The response is rendered Markdown.
func TestApprovalScreen(t *testing.T) {
	answer := "# Tides\n\nHigh at **12:10**, see `notes/a.txt`:\n\n| harbour | high |\n|---|---:|\n| Kiel | 12:10 |\n| Rostock | 11:40 |\n\n1. one\n2. two\n   - three\n\n```sh\ncat notes/a.txt\n```\n\nThat is all."
	for _, columns := range []int{80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			home := harbourHome(t)
			if err := os.Mkdir(filepath.Join(home, "project"), 0o755); err != nil {
				t.Fatal(err)
			}
			v := newVendor(t, asksFor("1", "write_file", `{"path":"notes/a.txt","content":"one\ntwo\nthree\n"}`),
				asksFor("2", "edit_file", `{"path":"notes/a.txt","old":"two\n","new":"2\n"}`),
				asksFor("3", "write_file", `{"path":"b.txt","content":"no"}`), jsonOf(map[string]string{"content": answer}))
			p := openPane(t, columns, home, nil, "--skills", "skills", "--model", "openai:small", "--base-url", v.URL+"/v1", "--workspace", "project")
			p.shows("Message…")
			p.types("Write notes", "Enter")
			p.golden(fmt.Sprintf("approval-%d", columns), "+ three")
			p.types("y")
			p.golden(fmt.Sprintf("edit-%d", columns), "+ 2")
			p.types("e")
			p.shows("Arguments (JSON)")
			p.types("x", "Enter")
			p.shows("JSON object")
			p.types("", "BSpace", "Enter")
			p.types("y")
			p.shows("+ no")
			p.types("n")
			p.golden(fmt.Sprintf("answer-%d", columns), "That is all.")
			if text, err := os.ReadFile(filepath.Join(home, "project", "notes", "a.txt")); err != nil || string(text) != "one\n2\nthree\n" {
				t.Errorf("the file is %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(home, "project", "b.txt")); err == nil {
				t.Error("what was not allowed was written")
			}
		})
	}
}

// An error of the vendor and an interrupted response are shown with advice, and a paste
// of many lines is one message.
func TestErrorScreen(t *testing.T) {
	for name, tt := range map[string]struct{ server, shown, next string }{
		"401": {refusing(t, 401), "refused the request (401)", "with --key NAME; or switch"},
		"cut": {cutting(t), "answer interrupted", "Try again, or switch the model with /model."},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPane(t, 120, harbourHome(t), nil, "--skills", "skills", "--model", "openai:small", "--base-url", tt.server)
			p.shows("Message…")
			p.tmux("set-buffer", strings.TrimSuffix(strings.Repeat("a line\n", 30), "\n"))
			p.tmux("paste-buffer", "-p")
			p.shows("[Pasted text #1, 30 lines]")
			p.types("", "Enter")
			screen := p.shows(tt.next)
			if !strings.Contains(screen, tt.shown) || strings.Contains(screen, "--help") {
				t.Errorf("it shows\n%s", screen)
			}
			if strings.Contains(screen, "a line") || strings.Count(screen, "> [Pasted text #1, 30 lines]\n") != 1 {
				t.Errorf("the paste is not folded:\n%s", screen)
			}
			if name == "cut" && !strings.Contains(screen, "\nHalf an ans\n") {
				t.Errorf("what came of the answer is missing:\n%s", screen)
			}
			p.types("/model demo", "Enter")
			p.shows("Model: demo:rules.")
			p.types("/model openai:other", "Enter")
			p.shows(":other at 127.0.0.1:")
			p.types("", "C-d")
			p.ends("left with 0")
		})
	}
}

// A terminal that can only print lines gets lines, with the same commands.
func TestLinesOnADumbTerminal(t *testing.T) {
	p := openPane(t, 80, harbourHome(t), []string{"TERM=dumb"}, "--skills", "skills", "--model", "demo")
	p.shows("/help lists the commands")
	p.types("/load tides", "Enter")
	p.shows("tides is loaded, until /unload.")
	p.types("/skills", "Enter")
	p.shows("Skills (1)")
	p.types("/cost", "Enter")
	p.shows("No requests yet")
	p.types("/nothing", "Enter")
	p.shows("unknown command /nothing")
	p.types("/tools", "Enter")
	p.shows("load_skill:")
	p.types("/unload tides", "Enter")
	p.shows("tides is unloaded.")
	p.types("/unload tides", "Enter")
	p.shows("skill is not loaded")
	p.types("use the skill tides", "Enter")
	p.shows("OPENAI_API_KEY.")
	p.types("/model openai:", "Enter")
	p.shows("unknown model")
	p.types("/model demo", "Enter")
	p.shows("Model: demo:rules.")
	p.types("/cost", "Enter")
	p.shows("models.prices")
	p.types("/export talk.md", "Enter")
	p.shows("Exported to talk.md.")
	p.types("/export talk.md", "Enter")
	p.shows("talk.md already exists")
	text, err := os.ReadFile(filepath.Join(p.home, "talk.md"))
	if err != nil || !strings.Contains(string(text), "use the skill tides\n") || !strings.Contains(string(text), "The skill tides was loaded.") {
		t.Errorf("exported is %s, %v", text, err)
	}
	p.types("/resume", "Enter")
	p.shows("(this one)")
	p.types("/resume 2", "Enter")
	p.shows("conversation 2")
	p.types("/quit", "Enter")
	p.ends("left with 0")
}

func TestLinesOfJSON(t *testing.T) {
	p := openPane(t, 200, harbourHome(t), []string{"TERM=xterm"}, "--skills", "skills", "--model", "demo", "--json", "--preload", "tides")
	p.shows(`{"type":"skill_loaded","skill":"tides"}`)
	p.types("/skills", "Enter")
	p.shows(`{"type":"notice","text":"Loaded\n\n• tides`)
	p.types("hello", "Enter")
	p.shows(`{"type":"done"`)
	p.types("/quit", "Enter")
	p.ends("left with 0")
}

// Another conversation is opened from within one, with its end; a resize and a stopped
// answer leave the scrollback whole.
func TestScreenResumesAndResizes(t *testing.T) {
	p := openPane(t, 80, harbourHome(t), []string{"NO_COLOR=1"}, "--skills", "skills", "--model", "demo")
	first := regexp.MustCompile(`conversation (\S+)`)
	p.shows("Message…")
	raw := p.tmux("capture-pane", "-p", "-J")
	id := first.FindStringSubmatch(raw)
	if id == nil {
		t.Fatalf("no conversation is named:\n%s", raw)
	}
	p.types("hello there", "Enter")
	p.shows("OPENAI_API_KEY.")
	p.types("", "C-d")
	p.ends("left with 0")
	exe, err := exec.LookPath("loadout")
	if err != nil {
		t.Fatal(err)
	}
	p.types("clear; HOME="+console.ShellQuote(p.home)+" NO_COLOR=1 "+console.ShellQuote(exe)+" chat --skills skills --model demo; echo left again with $?", "Enter")
	p.shows("Message…")
	p.types("/resume "+id[1], "Enter")
	p.shows("hello there")
	p.tmux("resize-window", "-x", "40", "-y", "30")
	p.shows("> Message…")
	if coloured := p.tmux("capture-pane", "-p", "-e"); strings.Contains(coloured, "\x1b[3") {
		t.Errorf("with NO_COLOR there are colours: %q", coloured)
	}
	p.types("", "C-d")
	p.shows("left again with 0")
}
