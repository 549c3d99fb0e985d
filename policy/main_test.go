package policy_test

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) {
	if work := os.Getenv(workVariable); work != "" {
		os.Exit(child(work))
	}
	goleak.VerifyTestMain(m)
}

var (
	ann   = policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
)

// digestOf returns a digest whose hexadecimal digits repeat s.
func digestOf(s string) policy.Digest {
	return policy.Digest("sha256:" + strings.Repeat(s, 64/len(s)))
}

// newGrant returns a permanent grant of ann that lets robot run a skill.
func newGrant(subject policy.Digest) policy.Grant {
	return policy.Grant{Principal: robot, Subject: subject, Name: "pdf", Origin: "user", Permissions: policy.Permissions{Run: true}, Scope: policy.Always, By: ann}
}
