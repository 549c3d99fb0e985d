package setup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
)

// A skill that requests more secrets than an approval can hold is not approved,
// and a note says so.
func TestUnstorableConfiguredApprovalIsNoted(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "skills", "task")
	var text strings.Builder
	text.WriteString("---\nname: task\ndescription: Does a task.\nmcpServers:\n  a:\n    command: server.py\n    env:\n")
	for i := range 300 {
		fmt.Fprintf(&text, "      V%d: ${{secrets.S%d}}\n", i, i)
	}
	text.WriteString("---\nDo it.\n")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	s := &Setup{Skills: []string{filepath.Dir(dir)}, Console: console.Console{Stderr: &notes, Getenv: func(name string) string {
		return map[string]string{"HOME": home, "USERPROFILE": home}[name]
	}}}
	c, err := s.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := s.NewRuntime(t.Context(), c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	r, err := rt.ReadApprovalRequest(t.Context(), "task")
	if err != nil {
		t.Fatal(err)
	}
	c.Policy.Approved = []string{"task=" + string(r.Digest)}
	grants, _, err := s.readApproved(t.Context(), c, rt).List(t.Context())
	if err != nil || len(grants) > 0 {
		t.Errorf("got approvals %v, error %v, want none", grants, err)
	}
	if got := notes.String(); !strings.Contains(got, "policy.approved: task is not approved: ") || !strings.Contains(got, "300 secrets") {
		t.Errorf("notes %q, want that task is not approved because of its 300 secrets", got)
	}
}
