package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// terminalUser is loadout on its own terminal.
type terminalUser struct {
	*exec.Cmd
	master *os.File
	ended  chan struct{}
	read   chan struct{}

	mu   sync.Mutex
	text strings.Builder
}

func openConsole(t *testing.T, width int, env []string, args ...string) *terminalUser {
	t.Helper()
	return openConsoleOf(t, "loadout", width, env, args...)
}

// openConsoleOf is openConsole of an executable.
func openConsoleOf(t *testing.T, exe string, width int, env []string, args ...string) *terminalUser {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx") // not blocking, so that closing it ends a read
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	home := t.TempDir()
	c := &terminalUser{Cmd: exec.Command(exe, args...), master: master, ended: make(chan struct{}), read: make(chan struct{})}
	c.Stdin, c.Stdout, c.Stderr, c.Dir = slave, slave, slave, home
	c.Env = append(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_STATE=", "NO_COLOR=", "TERM=xterm"), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // until the program exits or the terminal closes
		defer close(c.read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			c.mu.Lock()
			c.text.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { c.Wait(); close(c.ended) }()
	t.Cleanup(func() {
		c.Process.Kill()
		<-c.ended
		master.Close()
	})
	return c
}

func (c *terminalUser) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(c.text.String(), "\r\n", "\n")
}

// await waits until the screen has a text.
func (c *terminalUser) await(t *testing.T, text string) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(c.output(), text) {
			return
		}
	}
	t.Fatalf("no %q on the screen:\n%s", text, c.output())
}

func (c *terminalUser) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// end waits for the program and all that it wrote, and checks its exit code.
func (c *terminalUser) end(t *testing.T, code int) {
	t.Helper()
	for _, over := range []chan struct{}{c.ended, c.read} {
		select {
		case <-over:
		case <-time.After(30 * time.Second):
			t.Fatalf("it goes on:\n%s", c.output())
		}
	}
	if got := c.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d:\n%s", got, code, c.output())
	}
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Lists fit the terminal and use colour if enabled.
func TestTerminalWidth(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		for _, args := range []string{"list", "search data", "doctor", "explain csv-analysis", "config show"} {
			t.Run(fmt.Sprint(args, width), func(t *testing.T) {
				c := openConsole(t, width, nil, strings.Fields(args)...)
				c.end(t, exit.OK)
				if !colours.MatchString(c.output()) {
					t.Error("no colours")
				}
				for line := range strings.Lines(colours.ReplaceAllString(c.output(), "")) {
					if line = strings.TrimSuffix(line, "\n"); terminal.Width(line) > width {
						t.Errorf("a line has %d columns: %s", terminal.Width(line), line)
					}
				}
			})
		}
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		c := openConsole(t, 80, []string{env}, "list")
		c.end(t, exit.OK)
		if strings.Contains(c.output(), "\x1b") || !strings.Contains(c.output(), "To read one: loadout show NAME") {
			t.Errorf("%s: %s", env, c.output())
		}
	}
}

// connect prompts before it writes if the user can answer.
func TestTerminalConnect(t *testing.T) {
	const question = "Apply this change? [y/N] "
	tests := map[string]struct {
		args, answer string
		code         int
		written      bool
	}{
		"yes":          {"", "y\n", exit.OK, true},
		"no":           {"", "n\n", exit.Refused, false},
		"nothing":      {"", "\n", exit.Refused, false},
		"end of input": {"", "\x04", exit.Refused, false},
		"interrupt":    {"", "\x03", exit.Interrupted, false},
		"not asked":    {"--yes", "", exit.OK, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := openConsole(t, 100, nil, append([]string{"connect", "cursor"}, strings.Fields(tt.args)...)...)
			if tt.answer != "" {
				c.await(t, question)
				c.types(t, tt.answer)
			}
			c.end(t, tt.code)
			_, err := os.Stat(filepath.Join(c.Dir, ".cursor", "mcp.json"))
			if written := err == nil; written != tt.written {
				t.Errorf("written: %v, want %v", written, tt.written)
			}
		})
	}
}

// A server started on a terminal prints what it is, and ends with Ctrl-C, at the end of
// the input, or when the terminal closes.
func TestTerminalServer(t *testing.T) {
	const ctrlC = "\x03"
	for args, hint := range map[string]string{"mcp": "loadout connect CLIENT", "mcp --http 127.0.0.1:0": "MCP endpoint: "} {
		t.Run(args+" interrupted", func(t *testing.T) {
			c := openConsole(t, 80, nil, strings.Fields(args)...)
			c.await(t, hint)
			c.await(t, "Ctrl-C")
			c.types(t, ctrlC)
			c.end(t, exit.Interrupted)
		})
		t.Run(args+" hung up", func(t *testing.T) {
			c := openConsole(t, 80, nil, strings.Fields(args)...)
			c.await(t, "Ctrl-C")
			c.master.Close()
			select {
			case <-c.ended:
			case <-time.After(30 * time.Second):
				t.Fatal("it goes on")
			}
		})
	}
	c := openConsole(t, 80, nil, "mcp")
	c.await(t, "Ctrl-C")
	c.types(t, "\x04")
	c.end(t, exit.OK)
}

func TestServersOnANarrowTerminal(t *testing.T) {
	home := withServersFile(t, "  unset: {url: 'https://mcp.example.com/mcp', headers: {X-Key: '${NOWHERE_TO_BE_FOUND}'}}\n")
	c := openConsole(t, 80, []string{"HOME=" + home, "LOADOUT_CONFIG="}, "servers")
	c.await(t, "NOWHERE_TO_BE_FOUND")
	c.end(t, exit.OK)
	text := colours.ReplaceAllString(c.output(), "")
	if !strings.Contains(text, "NAME   TRANSPORT  STATE           ERA  TOOLS  LATENCY\n") || strings.Contains(text, "…\n") {
		t.Errorf("the table is\n%s", text)
	}
	for line := range strings.Lines(text) {
		if terminal.Width(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("a line is too long: %q", line)
		}
	}
}
