package loadout_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
)

// newApproved returns a runtime whose user answers as given, and the requests.
func newApproved(t *testing.T, answer func() (loadout.Approval, error)) (*loadout.Runtime, *[]*loadout.ApprovalRequest) {
	t.Helper()
	asked := &[]*loadout.ApprovalRequest{}
	rt, err := loadout.New(t.Context(), &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
			"greet/SKILL.md": {Data: []byte("---\nname: greet\ndescription: Greets.\n---\n")},
			"greet/greet.sh": {Data: []byte("echo hello\n")},
		})},
		Scripts: &loadout.Scripts{Sandbox: backend()},
		Approve: func(_ context.Context, r *loadout.ApprovalRequest) (loadout.Approval, error) {
			*asked = append(*asked, r)
			return answer()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt, asked
}

// An approval is for one run unless the user says more.
func TestApproveScopes(t *testing.T) {
	for _, tt := range []struct {
		scope policy.Scope
		want  int // requests for two runs in one session and one in another
	}{{"", 3}, {policy.Once, 3}, {policy.ForSession, 2}, {policy.Always, 1}} {
		rt, asked := newApproved(t, func() (loadout.Approval, error) { return loadout.Approval{Approved: true, Scope: tt.scope}, nil })
		for _, session := range []string{"a", "a", "b"} {
			res, err := rt.Run(t.Context(), loadout.Run{Skill: "greet", Script: "greet.sh", Session: session})
			if err != nil || res.Stdout != "hello\n" {
				t.Fatalf("scope %q: %+v, %v", tt.scope, res, err)
			}
		}
		if len(*asked) != tt.want || (*asked)[0].Script != "greet.sh" || (*asked)[0].Reason != "not approved" {
			t.Errorf("scope %q: asked %d times, want %d", tt.scope, len(*asked), tt.want)
		}
	}
}

// Without an approval nothing runs, and the error says why.
func TestApproveRefuses(t *testing.T) {
	broken := errors.New("nobody is there")
	for _, tt := range []struct {
		answer loadout.Approval
		err    error
		want   string
	}{
		{loadout.Approval{Feedback: "not now"}, nil, "skill greet may not run scripts: declined by the user"},
		{loadout.Approval{Approved: true}, broken, "skill greet may not run scripts: not approved; cannot ask the user: nobody is there"},
	} {
		rt, asked := newApproved(t, func() (loadout.Approval, error) { return tt.answer, tt.err })
		_, err := rt.Run(t.Context(), loadout.Run{Skill: "greet", Script: "greet.sh"})
		r, ok := errors.AsType[*loadout.RefusedError](err)
		if !ok || err.Error() != tt.want || r.Feedback != tt.answer.Feedback || r.Declined() != (tt.err == nil) || !errors.Is(err, tt.err) && tt.err != nil {
			t.Errorf("%+v: %v", tt.answer, err)
		}
		if len(*asked) != 1 || rt.Runner().CanAcquireLease(t.Context(), "greet", execution.Caller{Principal: policy.LocalUser()}) {
			t.Errorf("asked %d times", len(*asked))
		}
	}
}
