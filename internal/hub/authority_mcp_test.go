package hub_test

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/policy"
)

// A user who may use an endpoint gets an error about the missing Accept header.
var authorityOfMCP = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"POST /mcp", "", nil, anInitialize, "401 400 400 400 400 400 400", "400 mcp"},
	{"POST /mcp/p/{ghost}", "the Ghost of the group", theGhost, anInitialize, "401 404 400 400 400 400 404", "400 mcp"},
	{"POST /mcp/p/group:{group}/{ghost}", "the Ghost of the group", theGhost, anInitialize, "401 404 400 400 400 400 403", "400 mcp"},
	{"POST /mcp/p/none", "a Ghost that there is not", nil, anInitialize, "401 404 404 404 404 404 404", "404 mcp"},
	{"POST /mcp/s/{label}", "skills of a server of the group", aPublisher, anInitialize, "401 404 400 400 400 400 404", "400 mcp"},
	{"POST /mcp/s/none", "skills of a server that there is not", nil, anInitialize, "401 404 404 404 404 404 404", "404 mcp"},
	{"GET /.well-known/oauth-protected-resource", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /.well-known/oauth-protected-resource/mcp", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /.well-known/oauth-protected-resource/mcp/p/x", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},
	{"GET /.well-known/oauth-protected-resource/mcp/s/x", "", nil, nil, "200 200 200 200 200 200 200", "200 any"},

	// Whoever may use the server gets an error about a missing value.
	{"list-published-skills", "of a server of the group", aPublisher, nil, "401 404 409 409 409 409 404", "409 chat"},
	{"approve-published-skill", "of a server of the group", aPublisher, aPublishedSkill, "401 404 404 404 404 404 404", "404 review"},
	{"revoke-published-skill", "of a server of the group", aPublisherAndPath, nil, "401 404 404 404 404 404 404", "404 review"},

	{"list-capabilities", "", nil, nil, "401 200 200 200 200 200 200", "200 chat mcp"},
	{"list-capabilities", "of the Ghost of the group", ofTheGhost, nil, "401 404 200 200 200 200 403", "200 chat mcp"},

	{"list-grants", "of somebody else", theirs, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-grants", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"give-grant", "for a tool that there is not", nil, forNoTool, "401 404 404 404 404 404 404", "404 review"},
	{"withdraw-grant", "of somebody else", theirLeave, nil, "401 404 404 404 404 404 404", "404 review"},
	{"withdraw-grant", "one's own", myLeave, nil, "401 204 204 204 204 204 204", "204 review"},
}

func anInitialize(*scene) any { return initializeMCP }
func forNoTool(*scene) any    { return map[string]string{"tool": "none_such", "scope": "always"} }

func theGhost(s *scene) map[string]string { return map[string]string{"ghost": s.groupGhost()} }
func ofTheGhost(s *scene) map[string]string {
	return map[string]string{"?kind": "Ghost&name=" + s.groupGhost() + "&namespace=group:" + s.group}
}
func theirLeave(s *scene) map[string]string {
	return map[string]string{"grant": s.leave(s.victim)}
}
func myLeave(s *scene) map[string]string {
	u, err := s.node.DB().Users.ByName(s.t.Context(), s.name("actor"))
	if err != nil { // no turn runs
		return map[string]string{"grant": "none"}
	}
	return map[string]string{"grant": s.leave(u.ID)}
}

// aPublisher is the label of an MCP server of the group with skills.
func aPublisher(s *scene) map[string]string {
	owner := must(s.node.People().SignIns.Principal(s.t.Context(), account.UserID(s.owner)))(s.t)
	label := s.name("docs")
	s.node.write(s.t, owner, "kind: MCPServer\nmetadata: {name: "+label+", namespace: \"group:"+s.group+"\"}\nspec: {url: \"https://x.example.com/mcp\", headers: {X: \"${{user.none}}\"}, skills: ask}\n")
	return map[string]string{"label": label}
}

func aPublisherAndPath(s *scene) map[string]string {
	return map[string]string{"label": aPublisher(s)["label"], "?path": "guide"}
}

func aPublishedSkill(*scene) any {
	return map[string]string{"path": "guide", "digest": "sha256:" + strings.Repeat("a", 64)}
}

// groupGhost makes a Ghost of the group, and returns its name.
func (s *scene) groupGhost() string {
	owner := must(s.node.People().SignIns.Principal(s.t.Context(), account.UserID(s.owner)))(s.t)
	name := s.name("mcpghost")
	s.node.write(s.t, owner, "apiVersion: "+agents.APIVersion+"\nkind: Ghost\nmetadata: {name: "+name+", namespace: \"group:"+s.group+"\"}\nspec: {systemPrompt: Hello.}\n")
	return name
}

// leave is that a user gave for a tool, by its id.
func (s *scene) leave(user string) string {
	p := policy.Principal{ID: user, Kind: policy.UserPrincipal}
	g := policy.Grant{Principal: p, By: p, Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)), Name: "till__pay", Permissions: policy.Permissions{Call: true}, Scope: policy.Always}
	return must(assembly.NewGrantStore(s.node.DB(), p).Put(s.t.Context(), g))(s.t).ID
}
