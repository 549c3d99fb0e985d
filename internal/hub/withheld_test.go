package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/agents"
)

// pin makes an agent of the group that names a version of a skill by its digest.
func (c *groupHub) pin(t testing.TB, name, skill, id, digest string) {
	t.Helper()
	text := fmt.Sprintf("apiVersion: %s\nkind: Ghost\nmetadata: {name: %s, namespace: %q}\nspec: {skills: [%s], skill_refs: {%[4]s: {skill_id: %s, content_hash: %q}}}\n",
		agents.APIVersion, name, c.in, skill, id, digest)
	c.developer.apply(t, "", text).want(t, 200)
}

// mcpToken returns a token for MCP clients.
func (c caller) mcpToken(t testing.TB) string {
	t.Helper()
	return c.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "mcp", "scopes": []string{"mcp"}}).want(t, 201).text(t, "token")
}

// An agent that names a version is never served with another one, and nobody but its
// uploader and the reviewers gets a version that is not approved.
func TestWithheldVersionOfAnAgent(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		id := c.developer.upload(t, c.in, "pdf", "FIRST", "run.sh", "#!/bin/sh\n")
		c.decide(t, c.maintainer, id, 1, "approved", responseRecorder[skillAnswer](t, c.reporter, "/skills/"+id).Digest).want(t, 204)
		second := c.developer.addVersion(t, id, "pdf", "SECOND", "run.sh", "#!/bin/sh\necho\n").want(t, 201).text(t, "digest")
		c.pin(t, "reader", "pdf", id, second)
		c.root.upload(t, "public", "pdf", "PUBLIC") // which must not take its place
		users := map[string]caller{"developer": c.developer, "maintainer": c.maintainer, "reporter": c.reporter}
		tokens := map[string]string{}
		for name, user := range users {
			tokens[name] = user.mcpToken(t)
		}
		following, stop := context.WithCancel(context.Background())
		followed := make(chan error, 1)
		go func() { followed <- c.Library().Run(following) }() // as a node does
		t.Cleanup(func() {
			stop()
			if err := <-followed; err != nil {
				t.Error(err)
			}
		})
		// gets waits until load_skill returns the text want.
		gets := func(when, name, want string) {
			t.Helper()
			cs := connectMCP(t, c.URL+"/mcp/p/"+c.in+"/reader", tokens[name], newerEra, nil)
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			text := ""
			for ctx.Err() == nil {
				text = textOfResult(callMCP(t, cs, "load_skill", args{"name": "pdf"}))
				if want != "" && strings.Contains(text, want) || want == "" && !strings.Contains(text, "FIRST") && !strings.Contains(text, "SECOND") && !strings.Contains(text, "PUBLIC") {
					return
				}
			}
			t.Errorf("%s: the %s loads %q, want %q", when, name, text, want)
		}
		check := func(when, reporter string) {
			t.Helper()
			gets(when, "developer", "SECOND")
			gets(when, "maintainer", "SECOND")
			gets(when, "reporter", reporter)
			p := c.reporter.profile(t, "Ghost/"+c.in+"/reader")
			if open := reporter != ""; (len(p.Skills) == 1) != open || (len(p.Problems) == 0) != open {
				t.Errorf("%s: the profile is %+v", when, p)
			}
			at := fmt.Sprintf("/api/v1/skills/%s/versions/2", id)
			for _, path := range []string{at + "/manifest", at + "/files/SKILL.md", at + "/package", at + "/diff?from=1", at + "/diff", at + "/findings", "/api/v1/resolve?skill_id=" + id + "&content_hash=" + second} {
				r := c.reporter.send(t, "GET", path, nil)
				if reporter == "" {
					r.wantProblem(t, 403, "not_reviewed")
				} else {
					r.want(t, 200)
				}
				if reporter == "" && strings.Contains(r.body, "secret note") {
					t.Errorf("%s: %s is %s", when, path, r.body)
				}
			}
			for _, path := range []string{at, "/api/v1/skills/" + id + "/versions"} {
				body := c.reporter.send(t, "GET", path, nil).want(t, 200).body
				if strings.Contains(body, "secret note") || strings.Contains(body, `"withheld":true`) != (reporter == "") {
					t.Errorf("%s: %s is %s", when, path, body)
				}
				if body := c.developer.send(t, "GET", path, nil).want(t, 200).body; reporter == "" && when != "pending" && !strings.Contains(body, "secret note") {
					t.Errorf("%s: %s is %s for its uploader", when, path, body)
				}
			}
		}
		decide := func(decision string) {
			t.Helper()
			c.maintainer.send(t, "PUT", fmt.Sprintf("/api/v1/skills/%s/versions/2/review", id), map[string]string{"decision": decision, "digest": second, "note": "secret note"}).want(t, 204)
		}
		check("pending", "")
		decide("changes-requested")
		check("changes requested", "")
		decide("rejected")
		check("rejected", "")
		decide("approved")
		check("approved", "SECOND")
		third := c.developer.addVersion(t, id, "pdf", "THIRD", "run.sh", "#!/bin/sh\ntrue\n").want(t, 201).text(t, "digest")
		c.decide(t, c.maintainer, id, 3, "approved", third).want(t, 204)
		check("superseded", "SECOND")
		decide("pending")
		check("pending again", "")
		c.maintainer.send(t, "PATCH", "/api/v1/skills/"+id, map[string]any{"hidden": true}).want(t, 200)
		gets("hidden", "reporter", "")
		decide("rejected")
		c.maintainer.send(t, "DELETE", "/api/v1/skills/"+id+"/versions/2", nil).wantProblem(t, 400, "SKILL_REFERENCED")
		c.maintainer.send(t, "DELETE", "/api/v1/skills/"+id+"/versions/2?unbind=true", nil).want(t, 204)
		gets("deleted", "reporter", "")
	})
}

// If every version is rejected, only the uploader and the reviewers see the skill.
func TestRejectedSkill(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		id := c.developer.upload(t, c.in, "pdf", "FIRST", "run.sh", "#!/bin/sh\n")
		c.decide(t, c.maintainer, id, 1, "rejected", responseRecorder[skillAnswer](t, c.reporter, "/skills/"+id).Digest).want(t, 204)
		second := c.developer.addVersion(t, id, "pdf", "SECOND", "run.sh", "#!/bin/sh\necho\n").want(t, 201)
		if second.text(t, "state") != "pending" || !strings.Contains(second.body, `"current":false`) {
			t.Errorf("the upload is %s", second.body)
		}
		for _, path := range []string{"/skills/" + id, "/skills/" + id + "/versions/2", "/skills/" + id + "/versions/1/files/SKILL.md", "/skills/" + id + "/versions/current/package"} {
			c.reporter.send(t, "GET", "/api/v1"+path, nil).wantProblem(t, 404, "not_found")
			c.developer.send(t, "GET", "/api/v1"+path, nil).want(t, 200)
			c.maintainer.send(t, "GET", "/api/v1"+path, nil).want(t, 200)
		}
		for who, want := range map[*caller]int{&c.reporter: 0, &c.developer: 1, &c.maintainer: 1} {
			if got := responseRecorder[skillList](t, *who, "/skills?namespace="+c.in).Items; len(got) != want {
				t.Errorf("the list has %+v, want %d", got, want)
			}
			if got := who.send(t, "GET", "/.well-known/agent-skills/index.json", nil).want(t, 200).body; strings.Contains(got, "pdf") {
				t.Errorf("the index has %s", got)
			}
		}
		cs := connectMCP(t, c.URL+"/mcp", c.reporter.mcpToken(t), newerEra, nil)
		if res := callMCP(t, cs, "load_skill", args{"name": "pdf"}); !res.IsError {
			t.Errorf("a client loads %q", textOfResult(res))
		}
		c.decide(t, c.maintainer, id, 2, "approved", second.text(t, "digest")).want(t, 204)
		if got := responseRecorder[skillAnswer](t, c.reporter, "/skills/"+id); got.Number != 2 || !got.Runnable {
			t.Errorf("approved, the skill is %+v", got)
		}
	})
}
