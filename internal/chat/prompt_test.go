package chat

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/setup"
)

func TestPromptFromAPipe(t *testing.T) {
	for _, tt := range []struct {
		name, prompt string
		after        time.Duration // of silence
		input        string
		want, note   string
	}{
		{"both", "Review it.", 0, "a - b\n", "Review it.\n\n```\na - b\n```", ""},
		{"both, slowly", "Review it.", time.Second, "a - b\n", "Review it.\n\n```\na - b\n```", ""},
		{"nothing comes", "Review it.", 3 * time.Second, "too late\n", "Review it.", "continuing without it"},
		{"it is what is said", "", 3 * time.Second, "hello\n", "hello", "reading standard input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, to := io.Pipe()
				go func() {
					time.Sleep(tt.after)
					io.WriteString(to, tt.input)
					to.Close()
				}()
				var shown bytes.Buffer
				a := &Host{Setup: setup.Setup{Console: console.Console{Stdin: in, Stdout: io.Discard, Stderr: &shown, Getenv: func(string) string { return "" }}}}
				o := &Flags{Prompt: tt.prompt}
				if err := a.readPrompt(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // ends the input
				if o.Prompt != tt.want || !strings.Contains(shown.String(), tt.note) || tt.note == "" && shown.Len() > 0 {
					t.Errorf("got %q; it notes %q", o.Prompt, shown.String())
				}
			})
		})
	}
}
