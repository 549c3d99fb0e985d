package decision_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/policy"
)

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

// call returns a call of a tool that may modify data.
func call(server, tool, arguments string) policy.ToolCall {
	return policy.ToolCall{Server: server, Tool: tool, Arguments: json.RawMessage(arguments), Safety: policy.Medium}
}

func rules(t *testing.T, texts ...string) policy.Rules {
	t.Helper()
	r, problems := policy.ParseRules(texts)
	if len(problems) > 0 {
		t.Fatalf("%q: %v", texts, problems)
	}
	return r
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
