package console_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/console"
)

// terminal returns a terminal of so many columns, and what is on its other side.
func terminal(t *testing.T, columns int) (side, tty *os.File) {
	t.Helper()
	side, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { side.Close() })
	n, err := unix.IoctlGetInt(int(side.Fd()), unix.TIOCGPTN)
	unlock := 0
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, side.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock))); err != nil || e != 0 {
		t.Skip(err, e)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(side.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	return side, tty
}

func TestColors(t *testing.T) {
	_, tty := terminal(t, 80)
	env := map[string]string{}
	c := &console.Console{Stdout: &console.StdoutWriter{Writer: tty}, Getenv: func(k string) string { return env[k] }}
	if got := []string{c.Bold("x"), c.Faint("x"), c.Red("x"), c.Green("x"), c.Bold("")}; strings.Join(got, "|") != "\x1b[1mx\x1b[0m|\x1b[2mx\x1b[0m|\x1b[31mx\x1b[0m|\x1b[32mx\x1b[0m|" {
		t.Errorf("on a terminal: %q", got)
	}
	for k, v := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		env = map[string]string{k: v}
		if got := c.Bold("x"); got != "x" {
			t.Errorf("with %s=%s: %q", k, v, got)
		}
	}
	env = nil
	c.Stdout = &bytes.Buffer{}
	if got := c.Bold("x"); got != "x" {
		t.Errorf("not on a terminal: %q", got)
	}
}

// Lines fit the terminal; a file gets whole lines.
func TestTerminalWidth(t *testing.T) {
	for columns, want := range map[int]int{100: 100, 40: 40, 20: 40, 0: 0} {
		_, tty := terminal(t, columns)
		if got := (&console.Console{Stdout: tty}).TerminalWidth(); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, w := range []io.Writer{file, &bytes.Buffer{}} {
		c := &console.Console{Stdout: w}
		var b strings.Builder
		c.WriteWrapped(&b, "  ", strings.Repeat("word ", 50), console.NoStyle)
		if c.TerminalWidth() != 0 || strings.Count(b.String(), "\n") > 1 || !strings.Contains(b.String(), "  word word") {
			t.Errorf("width %d, %q", c.TerminalWidth(), b.String())
		}
	}
	_, tty := terminal(t, 60)
	c := &console.Console{Stdout: tty, Getenv: func(string) string { return "" }}
	var b strings.Builder
	c.WriteWrapped(&b, "  ", strings.Repeat("word ", 50), c.Bold)
	for line := range strings.Lines(b.String()) {
		if len(strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(line)) > 61 {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
	if !strings.Contains(b.String(), "\x1b[1m") {
		t.Errorf("not bold: %q", b.String())
	}
}

// Only terminals show progress, and it disappears before other output.
func TestProgressLine(t *testing.T) {
	_, tty := terminal(t, 80)
	for what, c := range map[string]*console.Console{
		"a terminal": {Stderr: tty}, "a quiet terminal": {Stderr: tty, Quiet: true}, "a buffer": {Stderr: &bytes.Buffer{}},
	} {
		if got := c.NewProgress() != nil; got != (what == "a terminal") {
			t.Errorf("%s shows progress: %t", what, got)
		}
	}
	var out bytes.Buffer
	p := &console.ProgressLine{Console: &console.Console{Stderr: tty}}
	p.Show("one")
	p.Show("two")
	if n, err := p.WrapWriter(&out).Write([]byte("text")); n != 4 || err != nil || out.String() != "text" {
		t.Errorf("wrote %q, %d, %v", out.String(), n, err)
	}
	p.End()
	p.End()
}

// What an untrusted program prints cannot control the terminal; a file gets all of it.
func TestFilterOutput(t *testing.T) {
	_, tty := terminal(t, 80)
	for stream, want := range map[any]string{tty: "a\x1b[31mb", &bytes.Buffer{}: "a\x1b[31mb\x1b[2J"} {
		var out bytes.Buffer
		w, end := console.FilterOutput(stream, &out)
		if _, err := io.WriteString(w, "a\x1b[31mb\x1b[2J"); err != nil {
			t.Fatal(err)
		}
		end()
		if got := out.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "[2J") != strings.Contains(want, "[2J") {
			t.Errorf("%T: %q, want %q", stream, got, want)
		}
	}
	if console.IsTerminal(&bytes.Buffer{}) || !console.IsTerminal(&console.StdoutWriter{Writer: tty}) {
		t.Error("IsTerminal")
	}
}

// What was typed before the question does not answer it.
func TestConfirmOnDiscardsInput(t *testing.T) {
	side, tty := terminal(t, 80)
	if _, err := io.WriteString(side, "y\n"); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	asked := writerFunc(func(b []byte) (int, error) {
		close(waiting)
		return len(b), nil
	})
	go func() {
		<-waiting
		io.WriteString(side, "n\n")
	}()
	c := &console.Console{Getenv: func(string) string { return "" }}
	if yes, err := c.ConfirmOn(t.Context(), tty, asked, "Sure?"); yes || err != nil {
		t.Errorf("%t, %v", yes, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestPrintFailures(t *testing.T) {
	var out, notes bytes.Buffer
	c := &console.Console{Stdout: &out, Stderr: &notes}
	invalid := make(chan int) // cannot be JSON
	if err := c.PrintJSON(invalid); err == nil || out.Len() > 0 {
		t.Errorf("PrintJSON: %v, %q", err, out.String())
	}
	if err := c.PrintJSONLists(console.JSONList{Name: "x", Items: console.JSONItems([]chan int{invalid})}); err == nil {
		t.Error("PrintJSONLists: no error")
	}
	out.Reset()
	c.PrintJSONLine(invalid)
	c.PrintJSONLine(map[string]string{"a": "<b>\u202e"})
	if want := "{\"a\":\"<b>\\u202e\"}\n"; out.String() != want {
		t.Errorf("PrintJSONLine: %q, want %q", out.String(), want)
	}
	c.Note("bad %s", "a\x1b[2J")
	c.Quiet = true
	c.Note("not shown")
	if got := notes.String(); !strings.HasPrefix(got, "loadout: bad a") || strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("notes %q", got)
	}
	failed := errors.New("input failed")
	c.Stdin = iotest.ErrReader(failed)
	if yes, err := c.Confirm(t.Context(), "?"); yes || !errors.Is(err, failed) {
		t.Errorf("a failed input: %t, %v", yes, err)
	}
	w := &console.StdoutWriter{Writer: writerFunc(func([]byte) (int, error) { return 0, failed })}
	if _, err := w.Write([]byte("x")); err != failed || w.Err != failed {
		t.Errorf("a failed output: %v, recorded %v", err, w.Err)
	}
}
