//go:build unix

package remote

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// What is tied has the input, output and exit status that it has by itself.
func TestTiedCommandBehavesNormally(t *testing.T) {
	for _, tt := range []struct {
		name, script, in, out, err string
		status                     int
	}{
		{"input and output", "cat", "a\x00b", "a\x00b", "", 0},
		{"status", "echo no >&2; exit 7", "", "", "no\n", 7},
		{"ended by a signal", "kill -9 $$", "", "", "", 137},
		{"arguments", `printf '<%s>' "$@"`, "", "<a b><$x><'><>", "", 0},
		{"no other files", "cat <&3 || cat <&4 || echo closed", "", "closed\n", "", 0},
		{"memory", "ulimit -d", "", "65536\n", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "memory" && runtime.GOOS != "linux" {
				t.Skip("the unit is the shell's choice")
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", tt.script, "sh", "a b", "$x", "'", "")
			var out, stderr bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(tt.in), &out, &stderr
			detach(cmd)
			p, err := startGit(cmd, 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			status := 0
			if e, ok := errors.AsType[*exec.ExitError](p.Wait()); ok {
				status = e.ExitCode()
			}
			if out.String() != tt.out || status != tt.status || tt.err != "" && stderr.String() != tt.err {
				t.Errorf("got %q, %q and status %d, want %q, %q and %d", &out, &stderr, status, tt.out, tt.err, tt.status)
			}
		})
	}
}
