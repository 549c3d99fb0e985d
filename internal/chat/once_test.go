package chat

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/internal/setup"
)

// A chat with one prompt keeps no process for a later script.
func TestOnePromptKeepsNoSpare(t *testing.T) {
	dir, out := t.TempDir(), &bytes.Buffer{}
	h := &Host{Setup: setup.Setup{Operator: operator.File{Root: t.TempDir()}, Console: console.Console{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: io.Discard, Getenv: func(name string) string {
			return map[string]string{"HOME": dir, "LOADOUT_STATE": dir + "/state", "LOADOUT_CACHE": dir + "/cache"}[name]
		}}}}
	if err := h.Run(t.Context(), &Flags{Prompt: "hello"}); err != nil || out.Len() == 0 {
		t.Fatalf("%v, %q", err, out)
	}
	if h.Backends != nil {
		t.Error("the chat keeps spare processes")
	}
}
