package setup

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/presence"
)

// At a terminal, typing the command confirms it, unless the caller requires an answer.
func TestConfirmUserAtTerminal(t *testing.T) {
	for name, tt := range map[string]struct {
		c       Confirmation
		json    bool
		answer  string
		confirm bool
	}{
		"no question":           {Confirmation{}, false, "n\n", true},
		"a question, agreed":    {Confirmation{Ask: true}, false, "y\n", true},
		"a question, declined":  {Confirmation{Ask: true}, false, "n\n", false},
		"a question, with JSON": {Confirmation{Ask: true}, true, "n\n", true},
		"--yes":                 {Confirmation{Ask: true, Yes: true}, false, "n\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				t.Skip(err)
			}
			defer master.Close()
			n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
			if err == nil {
				err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
			}
			if err != nil {
				t.Skip(err)
			}
			tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				t.Skip(err)
			}
			defer tty.Close()
			if _, err := master.WriteString(tt.answer); err != nil {
				t.Fatal(err)
			}
			tt.c.Question = "Go on?"
			s := &Setup{Console: console.Console{Stdin: tty, Stdout: tty, Stderr: tty, JSON: tt.json, Getenv: func(string) string { return "" }},
				DetectCaller: func() presence.Caller { return presence.Caller{} }}
			if got, err := s.ConfirmUser(t.Context(), tt.c); got != tt.confirm || err != nil {
				t.Errorf("confirmed %t, error %v, want %t", got, err, tt.confirm)
			}
		})
	}
}
