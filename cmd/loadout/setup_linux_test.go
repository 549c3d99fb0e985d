package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// From a home directory without any configuration, one command and one answer
// connect Claude Code and Codex.
func TestSetupAsksOnce(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"claude", "codex"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// loadout is found in the PATH of the test, before the program starts.
	for _, answer := range []string{"n", "y"} {
		home := t.TempDir()
		c := openConsole(t, 100, []string{"PATH=" + bin, "HOME=" + home}, "setup")
		c.await(t, "Connect Claude Code and Codex? [y/N] ")
		c.types(t, answer+"\n")
		<-c.ended
		<-c.read
		out := c.output()
		if n := strings.Count(out, "[y/N]"); n != 1 {
			t.Errorf("asked %d times:\n%s", n, out)
		}
		for _, file := range []string{".claude.json", ".codex/config.toml"} {
			text, err := os.ReadFile(filepath.Join(home, file))
			if connected := strings.Contains(string(text), "loadout"); connected != (answer == "y") {
				t.Errorf("answer %s: %s has %q, %v", answer, file, text, err)
			}
		}
		if next := strings.Contains(out, "Next: ask your agent: Which skills do you have?"); next != (answer == "y") {
			t.Errorf("answer %s:\n%s", answer, out)
		}
	}
}
