package loadout_test

import (
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// The commands of a skill are isolated if they can change nothing but files of
// their own. Tools of such a skill need no approval for each call.
func TestIsolatedLease(t *testing.T) {
	for name, tt := range map[string]struct {
		tier    sandbox.Tier
		request string // of the skill
		change  func(*policy.Grant)
		want    bool
	}{
		"confined":         {sandbox.Confined, "", nil, true},
		"isolated":         {sandbox.Isolated, "", nil, true},
		"a weaker sandbox": {sandbox.Confined - 1, "", nil, false},
		"network":          {sandbox.Isolated, "sandbox: {network: [a.example]}\n", nil, false},
		"secrets":          {sandbox.Isolated, "sandbox: {secrets: [KEY]}\n", nil, false},
		"workspace":        {sandbox.Isolated, "sandbox: {workspace_write: true}\n", nil, true}, // of its scripts; servers have none
		"not granted":      {sandbox.Isolated, "sandbox: {network: [a.example], secrets: [KEY], workspace_write: true}\n", func(g *policy.Grant) { g.Permissions = policy.Permissions{Run: true} }, true},
		"host network":     {sandbox.Isolated, "", func(g *policy.Grant) { g.Permissions.HostNetwork = true }, false},
		"unsandboxed":      {sandbox.Isolated, "", func(g *policy.Grant) { g.Permissions.Unsandboxed = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := files{"p/SKILL.md": "---\nname: p\ndescription: x\n" + tt.request + "provider: {module: m, class: P}\n---\n", "p/m.py": ""}
			s := anyShop(t, tree, func(s *shop, _ *loadout.Options) {
				s.scripts.Sandbox = &spy{tier: tt.tier}
				s.scripts.Bounds = policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true}
			})
			change := tt.change
			if change == nil {
				change = func(*policy.Grant) {}
			}
			s.approve(t, "p", change)
			l, err := s.Runner().AcquireLease(t.Context(), "p", execution.Caller{Principal: robot})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			if l.Isolated != tt.want {
				t.Errorf("Isolated is %t, want %t; the bounds are %+v", l.Isolated, tt.want, l.Bounds)
			}
		})
	}
}
