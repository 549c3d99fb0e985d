package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// A server for one conversation runs what the user allowed in it, and scripts of skills
// that the user added to it. The host reports changes of the catalog itself.
func TestConversationServer(t *testing.T) {
	tree := shell()
	for _, name := range []string{"deploy", "undeploy"} {
		tree[name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: Deploys.\ndisable-model-invocation: true\n---\n"
		tree[name+"/do.sh"] = "echo ran"
	}
	s := newWorkshop(t, tree, mcpserver.Options{Session: "s1", WithoutNotices: true, InvokedByUser: func(e *catalog.Entry) bool { return e.Name == "deploy" }})
	c := s.connect(t, way{"stdio", legacy}, nil)
	if res := c.call("run_skill_script", args{"skill": "deploy", "script": "do.sh"}); res.IsError || structured[ran](t, res).Stdout != "ran\n" {
		t.Errorf("a script of what the user provided: %s", textOf(res))
	}
	if res := c.call("run_skill_script", args{"skill": "undeploy", "script": "do.sh"}); !res.IsError || !strings.Contains(textOf(res), "only users can load skill") {
		t.Errorf("a script of what they did not bring: %s", textOf(res))
	}

	request, err := s.rt.ReadApprovalRequest(t.Context(), "sh")
	if err != nil {
		t.Fatal(err)
	}
	for session, allowed := range map[string]bool{"s2": false, "s1": true} {
		s.grants.Revoke(t.Context(), "sh")
		g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: request.Digest, Name: "sh", Origin: request.Entry.Origin,
			Permissions: request.Requested.Permissions(), Scope: policy.ForSession, Session: session}
		g.Permissions.Run = true
		if _, err := s.grants.Put(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if res := c.call("run_skill_script", line("echo hi")); res.IsError == allowed {
			t.Errorf("what is allowed for conversation %s, in s1: %s", session, textOf(res))
		}
	}

	if _, err := c.ListTools(c.ctx, nil); err != nil {
		t.Fatal(err)
	}
	s.change(t, files{"new/SKILL.md": skillText("new", "x")})
	if res := c.call("run_skill_script", line("echo hi")); strings.Contains(textOf(res), "What new is for") || structured[ran](t, res).News != "" {
		t.Errorf("news are reported: %s", textOf(res))
	}
}
