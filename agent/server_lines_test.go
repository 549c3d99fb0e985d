package agent_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// The model of an agent sees a line for each server that the caller lists. By
// default it sees none, so that the tools of all conversations are equal.
func TestServersAreListed(t *testing.T) {
	l := newLibrary(t, &session.MemoryLog{}, &approval.MemoryStore{}, policy.NewMemoryStore(), nil)
	for _, tt := range []struct {
		list func(string) bool
		want string
	}{
		{nil, ""},
		{func(name string) bool { return name == "shelf" }, "Servers:\n- shelf\n"},
		{func(string) bool { return true }, "Servers:\n- shelf\n- broken\n"},
		{nil, ""},
	} {
		all, closeTools, err := agent.SkillTools(t.Context(), l.rt, l.session, &agent.SkillToolOptions{Tools: l.set, Principal: ann, Server: &mcpserver.Options{ListServer: tt.list}})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range all {
			if _, lines, _ := strings.Cut(tool.Description, "Servers:"); tool.Name == "find_tools" && "Servers:"+lines != tt.want && lines+tt.want != "" {
				t.Errorf("the description is %q, want %q", tool.Description, tt.want)
			}
		}
		if err := closeTools(); err != nil {
			t.Fatal(err)
		}
	}
}
