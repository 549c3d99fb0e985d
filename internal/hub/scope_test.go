package hub_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestPatchOfUnknownID(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	_, ada := n.newUser(t, root, "ada")
	_, reading := n.newcomer(t, "reader", account.ScopeRead)
	bodies := map[string]any{
		"change-skill": map[string]bool{"hidden": true}, "change-user": map[string]string{"display": "x"},
		"change-group": map[string]string{"display": "x"}, "change-session": map[string]string{"title": "x"},
		"rename-folder": map[string]string{"name": "x"}, "change-comment": map[string]string{"text": "x"},
	}
	for _, c := range []caller{root, ada} {
		for id, where := range readDocument(t, n).operations() {
			method, path, _ := strings.Cut(where, " ")
			if method != "PATCH" {
				continue
			}
			body, ok := bodies[id]
			if !ok {
				t.Errorf("add a body for %s", id)
			}
			c.send(t, "PATCH", withParameters(path, "nothing"), body).wantProblem(t, 404, "not_found")
		}
		c.send(t, "PATCH", "/api/v1/skills/nothing", map[string]any{}).wantProblem(t, 404, "not_found")
	}
	mine := ada.upload(t, "", "pdf", "one")
	ada.send(t, "PATCH", "/api/v1/skills/"+mine, map[string]any{}).want(t, 200)
	n.anybody().with("Authorization", "Bearer "+reading).send(t, "PATCH", "/api/v1/skills/"+mine, map[string]any{}).wantProblem(t, 404, "not_found")
	public := root.upload(t, "public", "docx", "two")
	n.anybody().with("Authorization", "Bearer "+reading).send(t, "PATCH", "/api/v1/skills/"+public, map[string]any{}).want(t, 403)
}

// withParameters replaces the parameters of a path by a value.
func withParameters(path, value string) string {
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, value)
}

// No path with parameters can be read by a token for an MCP client, whether what they
// name exists or not.
func TestMCPTokenReadsNoItem(t *testing.T) {
	n := team(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	skill := n.put(t, p, ownPlace(p), "pdf", "one")
	c := n.anybody()
	c.token = token
	checked := 0
	for id, where := range readDocument(t, n).operations() {
		method, path, _ := strings.Cut(where, " ")
		if method != "GET" || !strings.Contains(path, "{") || id == "get-invitation" { // which everybody with the link may read
			continue
		}
		for _, value := range []string{"nothing", "me", string(skill.ID), "1"} {
			if r := c.send(t, "GET", withParameters(path, value), nil); r.status != 403 || !strings.Contains(r.body, `"scope"`) {
				t.Errorf("%s with %q: %d %s", id, value, r.status, r.body)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d paths were checked", checked)
	}
}

// What a token for an MCP client may read, also if it may run code.
func TestMCPTokenReadsOnlyCapabilities(t *testing.T) {
	n := team(t)
	for name, scopes := range map[string]account.Scopes{"mcp": account.ScopeMCP, "mcp-and-run": account.ScopeMCP | account.ScopeRun} {
		_, token := n.newcomer(t, name, scopes)
		c := n.anybody()
		c.token = token
		read := map[string]int{}
		for id, where := range readDocument(t, n).operations() {
			method, path, _ := strings.Cut(where, " ")
			if method != "GET" || strings.Contains(path, "{") {
				continue
			}
			if r := c.send(t, "GET", path, nil); r.status != 403 && r.status != 422 {
				read[id] = r.status
				if strings.Contains(r.body, "email") {
					t.Errorf("%s shows %s the address: %s", id, name, r.body)
				}
			}
		}
		want := map[string]int{"list-capabilities": 200, "get-ways-to-sign-in": 200}
		if scopes&account.ScopeRun != 0 {
			want["get-me"], want["get-about"] = 200, 200
		}
		wantSame(t, name, read, want)
	}
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	c := n.anybody()
	c.token = token
	r := c.send(t, "GET", "/api/v1/skills", nil)
	r.wantProblem(t, 403, "scope")
	if strings.Contains(r.body, "with the scope mcp") {
		t.Errorf("the answer recommends what the token has: %s", r.body)
	}
}
