package setup

import (
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

func TestHowToApprove(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"skill", &loadout.RefusedError{Skill: "pdf", NeedsApproval: true}, "run `loadout approve pdf` in their own terminal, after a review"},
		{"name for the shell", &loadout.RefusedError{Skill: "pdf; rm -rf ~", NeedsApproval: true}, "run `loadout approve 'pdf; rm -rf ~'` in their own terminal, after a review"},
		{"name like a flag", &loadout.RefusedError{Skill: "--all", NeedsApproval: true}, "run `loadout approve -- --all` in their own terminal, after a review"},
		{"disabled", &loadout.RefusedError{Skill: "pdf", Decision: policy.Decision{Hint: "enable it in the configuration"}}, "enable it in the configuration"},
		{"rule", &loadout.RefusedError{Call: &loadout.CallRequest{Tool: "a__b"}, Decision: policy.Decision{Code: decision.ByRule, Hint: "change the rule"}}, "to find the rule: loadout config show"},
		{"unapproved tool", &loadout.RefusedError{Call: &loadout.CallRequest{Tool: "a__b"}, NeedsApproval: true, Decision: policy.Decision{Hint: "add a rule"}}, "run `loadout approve a__b` in their own terminal"},
		{"tool that only reads", &tools.NotReadOnlyError{Tool: tools.Tool{Name: "a__b"}, Approvable: true}, "run `loadout approve a__b` in their own terminal"},
		{"tool that does not", &tools.NotReadOnlyError{Tool: tools.Tool{Name: "a__b"}}, ""},
	} {
		if got := (&Setup{}).HowToApprove(tt.err); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
