package hub_test

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

var authorityOfKinds = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"apply", "a Ghost of the group", nil, aGhost, "401 422 403 200 200 200 200", "200 write"},
	{"apply", "a Ghost of one's own", nil, aGhostOfMine, "401 200 200 200 200 200 200", "200 write"},
	{"apply", "a Model of the group", nil, aModel, "401 422 403 403 200 200 200", "200 write"},
	{"apply", "a Ghost of everybody", nil, aPublicGhost, "401 403 403 403 403 403 200", "200 write"},
	{"apply", "a Skill of the group", nil, aSkillText, "401 422 403 200 200 200 200", "200 write"},
	{"apply", "a Ghost, and the deletion of a Bot of the group", deletionOf("Bot", "lead"), aGhost, "401 404 403 403 200 200 200", "200 write"},
	{"put-kind", "a Ghost of the group", thing("Ghost", "plan"), anotherGhost, "401 404 403 200 200 200 200", "200 write"},
	{"put-kind", "a server of the group", thing("MCPServer", "wiki"), anotherServer, "401 404 403 403 200 200 200", "200 write"},
	{"list-kinds", "of the group", kindOfGroup("Ghost"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"list-kinds", "", kindNamed("Ghost"), nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-kinds", "skills of the group", kindOfGroup("Skill"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"list-agents", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"get-kind", "a Ghost of the group", thing("Ghost", "plan"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"get-kind", "a Skill of the group", thing("Skill", "prose"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"delete-kind", "a Bot of the group", thing("Bot", "lead"), nil, "401 404 403 403 204 204 204", "204 write"},
	{"delete-kind", "what is named", thing("Ghost", "plan"), nil, "401 404 403 403 409 409 409", "409 write"},
	{"delete-kind", "a Skill that is named", thing("Skill", "prose"), nil, "401 404 403 403 400 400 400", "400 write"},
	{"list-referrers", "a Ghost of the group", thing("Ghost", "plan"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"list-referrers", "a Skill of the group", thing("Skill", "prose"), nil, "401 404 403 403 200 200 200", "200 write"},
	{"get-profile", "a Bot of the group", thing("Bot", "lead"), nil, "401 404 200 200 200 200 403", "200 chat"},

	{"list-models", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-offered-models", "of a private address", nil, aModelServer, "401 403 403 403 403 403 422", "422 write"},
	{"connect-model", "of a private address", nil, aDefaultModel, "401 403 403 403 403 403 422", "422 write"},
	{"connect-model", "with a key, which needs scopes write and review", nil, aDefaultModelWithKey, "401 403 403 403 403 403 200", "403 any"},
	{"list-servers", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"get-servers", "of a Ghost of the group", thing("Ghost", "plan"), nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"review-server", "of a Ghost of the group", thing("Ghost", "plan"), anApproval, "401 404 403 403 204 204 204", "204 review"},
	{"restart-server", "of the group", thing("MCPServer", "wiki"), aRestart, "401 404 403 403 200 200 200", "200 write"},
	{"restart-operators-server", "that there is not", aServerName, nil, "401 403 403 403 403 403 404", "404 write"},
	{"accept-tools", "of a Ghost of the group", thing("Ghost", "plan"), someTools, "401 404 403 403 200 200 200", "200 review"},
	{"accept-operators-tools", "that there is not", aServerName, anyTools, "401 403 403 403 403 403 404", "404 write"},
	{"begin-server-sign-in", "of the group, with credentials of its own", thing("MCPServer", "wiki"), aRestart, "401 404 409 409 409 409 403", "409 write"},
	{"begin-operators-sign-in", "that there is not", aServerName, aRestart, "401 404 404 404 404 404 404", "404 write"},
	{"end-server-sign-in", "of the group, with credentials of its own", thing("MCPServer", "wiki"), nil, "401 404 200 200 200 200 403", "200 write"},
	{"end-operators-sign-in", "that there is not", aServerName, nil, "401 404 404 404 404 404 404", "404 write"},
	{"list-server-sign-ins", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"forget-server-sign-in", "that there is not", noSignIn, nil, "401 404 404 404 404 404 404", "404 write"},
	{"test-server", "that is written down", nil, aPrivateServer, "401 200 200 200 200 200 200", "200 write"},
	{"test-server", "of the group", nil, theServer, "401 404 403 403 200 200 200", "200 write"},
	{"test-server", "of the operator", nil, operators, "401 403 403 403 403 403 404", "404 write"},

	{"list-secrets", "of the group", ofGroup, nil, "401 404 403 403 200 200 403", "200 read"},
	{"list-secrets", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"list-secrets", "of another user", ofVictim, nil, "401 404 404 404 404 404 403", "403 any"},
	{"set-secret", "of the group", secretOfGroup, aValue, "401 404 403 403 204 204 403", "204 write"},
	{"set-secret", "of oneself", secretNamed, aValue, "401 204 204 204 204 204 204", "204 write"},
	{"delete-secret", "of the group", keptSecret, nil, "401 404 403 403 204 204 403", "204 write"},
	{"list-secret-grants", "of the group", keptSecret, nil, "401 404 403 403 200 200 403", "200 read"},
	{"grant-secret", "of the group", keptSecret, toTheServer, "401 404 403 403 204 204 403", "204 review"},
	{"revoke-secret", "of the group", aGrant, nil, "401 404 403 403 204 204 403", "204 review"},

	{"get-skill-settings", "of the hub", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"get-skill-settings", "of the group", scopeOfGroup, nil, "401 404 200 200 200 200 200", "200 read"},
	{"set-skill-settings", "of the hub", nil, hubSkillSettings, "401 403 403 403 403 403 200", "200 admin"},
	{"set-skill-settings", "of the group", scopeOfGroup, groupSkillSettings, "401 404 403 403 200 200 200", "200 admin"},
}

// things are what there is of the group in scenes that need it.
const things = `
kind: Ghost
metadata: {name: plan, namespace: GROUP}
spec: {skills: [prose], mcpServers: {tool: {command: tool-server}}}
---
kind: Bot
metadata: {name: lead, namespace: GROUP}
spec: {ghostRef: plan}
---
kind: MCPServer
metadata: {name: wiki, namespace: GROUP}
spec: {url: "https://wiki.example.com/mcp", headers: {Authorization: "Bearer ${{secrets.WIKI}}"}}
---
kind: Skill
metadata: {name: prose, namespace: GROUP}
spec: {description: Writes., prompt: "Write.\n"}
`

// asOwner is the owner of the group, with all scopes.
func (s *scene) asOwner() caller {
	text, _ := s.token(s.owner, account.AllScopes)
	return caller{node: s.node, token: text}
}

// furnish makes the things of the group.
func (s *scene) furnish() {
	s.t.Helper()
	s.asOwner().send(s.t, "POST", "/api/v1/apply", typed{"application/yaml", strings.ReplaceAll(things, "GROUP", "group:"+s.group)}).want(s.t, 200)
}

// digestOf is the digest of a server of the group.
func (s *scene) digestOf(kind, name string) string {
	s.t.Helper()
	var out struct{ Items []struct{ Digest string } }
	s.asOwner().send(s.t, "GET", "/api/v1/servers/"+kind+"/group:"+s.group+"/"+name, nil).want(s.t, 200).into(s.t, &out)
	return out.Items[0].Digest
}

func thing(kind, name string) func(s *scene) map[string]string {
	return func(s *scene) map[string]string {
		s.furnish()
		return map[string]string{"kind": kind, "namespace": "group:" + s.group, "name": name}
	}
}

func deletionOf(kind, name string) func(s *scene) map[string]string {
	return func(s *scene) map[string]string {
		s.furnish()
		return map[string]string{"?delete": kind + "/group:" + s.group + "/" + name}
	}
}

func kindNamed(kind string) func(s *scene) map[string]string {
	return func(*scene) map[string]string { return map[string]string{"kind": kind} }
}

func kindOfGroup(kind string) func(s *scene) map[string]string {
	return func(s *scene) map[string]string {
		s.furnish()
		return map[string]string{"kind": kind, "?namespace": "group:" + s.group}
	}
}

func ofGroup(s *scene) map[string]string      { return map[string]string{"?owner": "group:" + s.group} }
func scopeOfGroup(s *scene) map[string]string { return map[string]string{"?scope": "group:" + s.group} }
func ofVictim(s *scene) map[string]string     { return map[string]string{"?owner": "user:" + s.victim} }
func secretNamed(*scene) map[string]string    { return map[string]string{"secret": "WIKI"} }
func secretOfGroup(s *scene) map[string]string {
	return map[string]string{"secret": "WIKI", "?owner": "group:" + s.group}
}

// keptSecret is a secret of the group that is there.
func keptSecret(s *scene) map[string]string {
	s.furnish()
	s.asOwner().send(s.t, "PUT", "/api/v1/secrets/WIKI?owner=group:"+s.group, aValue(s)).want(s.t, 204)
	return secretOfGroup(s)
}

func aGrant(s *scene) map[string]string {
	keptSecret(s)
	s.asOwner().send(s.t, "POST", "/api/v1/secrets/WIKI/grants?owner=group:"+s.group, toTheServer(s)).want(s.t, 204)
	return map[string]string{"secret": "WIKI", "?owner": "group:" + s.group + "&digest=" + url.QueryEscape(s.digestOf("MCPServer", "wiki"))}
}

func docOf(kind, name, namespace, spec string) any {
	return typed{"application/yaml", fmt.Sprintf("kind: %s\nmetadata: {name: %s, namespace: %q}\nspec: %s\n", kind, name, namespace, spec)}
}

func aGhost(s *scene) any       { return docOf("Ghost", "one", "group:"+s.group, "{systemPrompt: Help.}") }
func aGhostOfMine(s *scene) any { return docOf("Ghost", "one", "", "{systemPrompt: Help.}") }
func aModel(s *scene) any       { return docOf("Model", "one", "group:"+s.group, "{vendor: demo}") }
func aPublicGhost(s *scene) any { return docOf("Ghost", s.name("g"), "public", "{}") }
func aSkillText(s *scene) any {
	return docOf("Skill", "one", "group:"+s.group, "{description: Helps., prompt: Help.}")
}
func anotherGhost(*scene) any {
	return map[string]any{"kind": "Ghost", "metadata": map[string]any{"name": "plan"}, "spec": map[string]any{"systemPrompt": "Another."}}
}
func anotherServer(*scene) any {
	return map[string]any{"kind": "MCPServer", "metadata": map[string]any{"name": "wiki"}, "spec": map[string]any{"url": "https://other.example.com"}}
}
func anApproval(s *scene) any {
	return map[string]any{"server": "tool", "digest": s.digestOf("Ghost", "plan"), "decision": "approved"}
}
func aModelServer(*scene) any {
	return map[string]any{"vendor": "openai", "base_url": "http://10.0.0.7/v1"}
}
func aDefaultModel(*scene) any {
	return map[string]any{"vendor": "openai", "base_url": "http://10.0.0.7/v1", "model": "m"}
}
func aDefaultModelWithKey(*scene) any {
	return map[string]any{"vendor": "openai", "base_url": "https://models.example.com/v1", "model": "m", "key": "k"}
}
func aRestart(*scene) any                  { return map[string]any{} }
func aServerName(*scene) map[string]string { return map[string]string{"name": "none"} }

func noSignIn(*scene) map[string]string { return map[string]string{"id": "00"} }
func anyTools(*scene) any               { return map[string]any{"digests": []string{"sha256:1"}} }
func someTools(s *scene) any {
	return map[string]any{"server": "tool", "digests": []string{s.heldTool("Ghost", "plan")}}
}
func aPrivateServer(*scene) any {
	return map[string]any{"config": map[string]any{"url": "http://169.254.169.254/"}}
}
func theServer(s *scene) any {
	s.furnish()
	return map[string]any{"kind": "MCPServer", "namespace": "group:" + s.group, "name": "wiki"}
}
func operators(*scene) any { return map[string]any{"server": "none"} }
func aValue(*scene) any    { return map[string]any{"value": "correct-horse"} }
func toTheServer(s *scene) any {
	return map[string]any{"kind": "MCPServer", "namespace": "group:" + s.group, "name": "wiki", "digest": s.digestOf("MCPServer", "wiki")}
}
func hubSkillSettings(s *scene) any {
	return map[string]any{"enabled": true, "allow": []string{}, "generation": s.generation("skills")}
}
func groupSkillSettings(*scene) any {
	return map[string]any{"enabled": false, "allow": []string{"pdf"}, "generation": 0}
}
