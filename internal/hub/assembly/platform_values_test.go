package assembly_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// platformWorld has a skill of a group whose server takes its address and its
// token from the platform, and two such servers.
type platformWorld struct {
	*fixture
	t             *testing.T
	first, second *remote
	skill         *library.Skill
	group, ghost  agents.Owner
	files         fstest.MapFS // of the skill
	answers       strings.Builder
}

func newPlatformWorld(t *testing.T, w *fixture, server string) *platformWorld {
	t.Helper()
	x := &platformWorld{fixture: w, t: t, first: newRemote(t, "first", "who"), second: newRemote(t, "second", "who"), group: agents.NamespaceOwner(w.team)}
	x.files = tree("s", "description: Uses the platform.\nmcpServers: {c: "+server+"}", "Use it.")
	s := w.upload(w.meg, w.team, "s", x.files)
	w.review(s, library.Approved)
	x.skill = s
	w.apply(w.meg, `{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g, namespace: team}, spec: {skills: [s]}}`)
	ghost, err := w.kinds.Get(t.Context(), w.meg, agents.GhostKind, "team", "g")
	must(t, err)
	x.ghost = agents.ServerOwner(ghost.ID)
	return x
}

func (x *platformWorld) set(p account.Principal, o agents.Owner, name, value string) {
	x.t.Helper()
	must(x.t, x.kinds.Secrets().Set(x.t.Context(), p, o, name, value))
}

func (x *platformWorld) grant(p account.Principal, o agents.Owner, target string, names ...string) {
	x.t.Helper()
	for _, name := range names {
		must(x.t, x.kinds.Secrets().Grant(x.t.Context(), p, o, name, agents.Subject{Kind: agents.SkillKind, Namespace: "team", Name: "s"}, policy.Digest(x.skill.Digest), target))
	}
}

// load loads the skill in a new conversation of ada with the given platform
// values, and checks the result. It returns the conversation.
func (x *platformWorld) load(variables map[string]string, want ...string) string {
	x.t.Helper()
	return x.say(variables, `call load_skill {"name":"s"}`, want...)
}

// use is like load, but also calls the server's tool.
func (x *platformWorld) use(variables map[string]string, want ...string) string {
	x.t.Helper()
	return x.say(variables, `call load_skill {"name":"s"}`+"\n"+call("s_c__who"), want...)
}

func (x *platformWorld) say(variables map[string]string, message string, want ...string) string {
	x.t.Helper()
	id := x.begin(x.ada, "Ghost/team/g")
	for name, value := range variables {
		x.set(x.ada, agents.SessionOwner(id), name, value)
	}
	x.answers.WriteString(x.ask(x.ada, id, message, want...))
	return id
}

func host(r *remote) string { return r.URL } // it has no TLS, so that the target contains the scheme

const platformServer = `{type: streamable-http, url: "${{backend_url}}/mcp/c/sse", headers: {Authorization: "Bearer ${{task_token}}"}}`

// Secrets that hold the platform values of platformServer.
const backendURL, taskToken = "variable.backend_url", "variable.task_token"

// The platform values of a Ghost take precedence over those of its group, and those
// of a conversation over both. Each needs a grant of its owner for the version of the
// skill and for the host that receives it.
func TestPlatformValuesOfGroupGhostAndConversation(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	x.load(nil, "not configured", "${{backend_url}}", "PUT /api/v1/secrets/variable.backend_url?owner=OWNER", "with the same owner, or without one for a session", "no names have a value here")
	x.set(x.meg, x.group, backendURL, x.first.URL)
	x.load(nil, "${{task_token}}", "no names have a value here") // names of values without a grant are not shown
	x.set(x.meg, x.group, taskToken, "group-t0ken")
	x.load(nil, "${{task_token}} may not be sent to this address; the maintainers of "+string(x.group)+" can grant it")
	x.ask(x.meg, x.begin(x.meg, "Ghost/team/g"), `call load_skill {"name":"s"}`, "${{task_token}} may not be sent to "+host(x.first)+": POST /api/v1/secrets/variable.task_token/grants?owner="+string(x.group))
	x.grant(x.meg, x.group, host(x.first), backendURL)
	x.load(nil, "${{task_token}} may not be sent to this address")
	x.grant(x.meg, x.group, host(x.first), taskToken)
	x.use(nil, "who of first")

	x.set(x.meg, x.ghost, taskToken, "ghost-t0ken")
	x.use(nil, "who of first") // without a grant, the Ghost's values do not count
	x.grant(x.meg, x.ghost, host(x.first), taskToken)
	x.load(nil, "${{backend_url}}", "names with a value here: ${{task_token}}") // values of two owners are never mixed
	x.set(x.meg, x.ghost, backendURL, x.first.URL)
	x.grant(x.meg, x.ghost, host(x.first), backendURL)
	x.use(nil, "who of first")

	own, session := agents.NamespaceOwner(own(x.ada)), map[string]string{taskToken: "session-t0ken", backendURL: x.second.URL}
	x.grant(x.ada, own, host(x.first), taskToken, backendURL)
	x.load(session, "may not be sent to "+host(x.second))
	x.grant(x.ada, own, host(x.second), taskToken, backendURL)
	id := x.use(session, "who of second")
	x.use(nil, "who of first") // another conversation has the values of the Ghost
	for token, r := range map[string]*remote{"group-t0ken": x.first, "ghost-t0ken": x.first, "session-t0ken": x.second} {
		if !r.saw("Bearer " + token) {
			t.Errorf("the server at %s did not get %s: %v", r.URL, token, r.auth)
		}
	}
	if x.first.saw("Bearer session-t0ken") || x.second.saw("Bearer group-t0ken") || x.second.saw("Bearer ghost-t0ken") {
		t.Errorf("a value went to another server: %v, %v", x.first.auth, x.second.auth)
	}

	x.set(x.meg, x.ghost, backendURL, x.second.URL) // another host needs another grant
	x.load(nil, "may not be sent to this address")
	if text := x.answers.String(); strings.Contains(text, "t0ken") {
		t.Errorf("an answer has a value: %s", text)
	}
	if found, err := x.db.Secrets.List(t.Context(), string(agents.SessionOwner(id))); err != nil || len(found) != 2 {
		t.Errorf("the conversation has %v, %v", found, err)
	}
	must(t, x.chat.Delete(t.Context(), x.ada, id))
	if found, err := x.db.Secrets.List(t.Context(), string(agents.SessionOwner(id))); err != nil || len(found) != 0 {
		t.Errorf("the values outlive the conversation: %v, %v", found, err)
	}
}

// A member who sets and grants an address of its own gets neither the token nor the
// secrets of the group there.
func TestOwnAddressGetsNoValuesOfOthers(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), `{type: streamable-http, url: "${{backend_url}}/mcp/c/sse", headers: {Authorization: "Bearer ${{secrets.KEY}}"}}`)
	own := agents.NamespaceOwner(own(x.ada))
	x.set(x.meg, x.group, backendURL, x.first.URL)
	x.set(x.meg, x.group, taskToken, "group-t0ken")
	x.set(x.meg, x.group, "KEY", "group-k3y")
	x.grant(x.meg, x.group, host(x.first), backendURL, taskToken)
	x.grant(x.meg, x.group, "", "KEY")
	x.use(nil, "who of first")
	if !x.first.saw("Bearer group-k3y") {
		t.Errorf("the group's server did not get its secret: %v", x.first.auth)
	}
	for _, variables := range []map[string]string{{backendURL: x.second.URL}, {}} {
		if len(variables) == 0 {
			x.set(x.ada, own, backendURL, x.second.URL)
		}
		x.grant(x.ada, own, host(x.second), backendURL)
		x.load(variables, "not configured", "${{secrets.KEY}}")
	}
	if len(x.second.auth) > 0 {
		t.Errorf("the member's server got %v", x.second.auth)
	}
	x.set(x.ada, own, "KEY", "own-k3y")
	x.grant(x.ada, own, "", "KEY")
	x.use(nil, "who of second")
	if !x.second.saw("Bearer own-k3y") || x.second.saw("Bearer group-k3y") {
		t.Errorf("the member's server got %v", x.second.auth)
	}
}

// A command gets no values of two owners, as it may send one to the address in
// another.
func TestCommandGetsValuesOfOneOwner(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), `{command: serve, env: {URL: "${{backend_url}}", TOKEN: "${{task_token}}"}}`)
	x.set(x.meg, x.group, backendURL, x.first.URL)
	x.set(x.meg, x.group, taskToken, "group-t0ken")
	x.grant(x.meg, x.group, "serve", backendURL, taskToken)
	x.grant(x.ada, agents.NamespaceOwner(own(x.ada)), "serve", backendURL)
	x.load(map[string]string{backendURL: x.second.URL}, "not configured", "${{task_token}}")
}

// A conversation gets no values of another one, even if both began without values.
func TestConversationGetsNoValuesOfAnother(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	x.grant(x.ada, agents.NamespaceOwner(own(x.ada)), host(x.second), taskToken, backendURL)
	a, b := x.load(nil, "not configured"), x.load(nil, "not configured")
	x.set(x.ada, agents.SessionOwner(a), backendURL, x.second.URL)
	x.set(x.ada, agents.SessionOwner(a), taskToken, "session-t0ken")
	x.ask(x.ada, b, `call load_skill {"name":"s"}`, "not configured")
	if len(x.second.auth) > 0 {
		t.Errorf("the server got %v", x.second.auth)
	}
	x.ask(x.ada, a, `call load_skill {"name":"s"}`+"\n"+call("s_c__who"), "who of second")
	x.set(x.ada, agents.SessionOwner(a), taskToken, "another-t0ken") // the first one has expired
	x.ask(x.ada, a, call("s_c__who"), "who of second")
	if !x.second.saw("Bearer session-t0ken") || !x.second.saw("Bearer another-t0ken") {
		t.Errorf("the server got %v", x.second.auth)
	}
}

// newSandboxedWorld is like newPlatformWorld with a server whose tool returns the
// address that it gets from the platform, and whether it has the file of KEY. The
// group has granted KEY to the skill.
func newSandboxedWorld(t *testing.T) *platformWorld {
	t.Helper()
	code := strings.Replace(pyServer, "import sys, json", "import sys, json, os", 1)
	code = regexp.MustCompile(`"text": [^}]*}`).ReplaceAllString(code, `"text": "key of " + os.environ["URL"] + ": " + str(os.path.exists("/run/secrets/KEY"))}`)
	js, err := json.Marshal(code)
	must(t, err)
	x := newPlatformWorld(t, sqlite(t, sandboxed(t)), `{command: python3, args: ["-c", `+string(js)+`], env: {URL: "${{backend_url}}"}}}
sandbox: {secrets: [KEY]`)
	x.set(x.meg, x.group, "KEY", "group-k3y")
	x.grant(x.meg, x.group, "", "KEY")
	return x
}

// callWhere loads the skill and calls the tool of newSandboxedWorld.
var callWhere = `call load_skill {"name":"s"}` + "\n" + call("s_c__where")

// The secrets in the files of a command have the owner of its platform values.
func TestFilesOfCommandHaveSecretsOfOneOwner(t *testing.T) {
	x := newSandboxedWorld(t)
	x.set(x.meg, x.group, backendURL, "https://group.example")
	x.grant(x.meg, x.group, "python3", backendURL)
	x.say(nil, callWhere, "key of https://group.example: True")
	x.grant(x.ada, agents.NamespaceOwner(own(x.ada)), "python3", backendURL)
	x.say(map[string]string{backendURL: "https://own.example"}, callWhere, "key of https://own.example: False")
}

// A copy of a skill in another group, whose maintainer sets an address, does not get
// the secrets of the first group there.
func TestFilesOfCopiedSkillHaveSecretsOfOneOwner(t *testing.T) {
	x := newSandboxedWorld(t)
	g, err := x.db.Groups.Create(t.Context(), store.Group{Name: "other"})
	must(t, err)
	must(t, x.db.Groups.SetMember(t.Context(), store.Member{GroupID: g.ID, UserID: string(x.ada.User), Role: store.Role(account.Maintainer.String())}))
	x.ada.Groups[account.GroupID(g.ID)] = account.Maintainer
	in := store.GroupNamespace(g.ID)
	copied := x.upload(x.ada, in, "s", x.files)
	x.review(copied, library.Approved)
	if copied.Digest != x.skill.Digest {
		t.Fatalf("the copy has the digest %s, want %s", copied.Digest, x.skill.Digest)
	}
	x.set(x.ada, agents.NamespaceOwner(in), backendURL, "https://other.example")
	must(t, x.kinds.Secrets().Grant(t.Context(), x.ada, agents.NamespaceOwner(in), backendURL, agents.Subject{Kind: agents.SkillKind, Namespace: "other", Name: "s"}, policy.Digest(copied.Digest), "python3"))
	x.apply(x.ada, `{apiVersion: loadout/v1, kind: Ghost, metadata: {name: copy}, spec: {skills: [s], skill_refs: {s: {namespace: other}}}}`)
	x.ask(x.ada, x.begin(x.ada, "Ghost/default/copy"), callWhere, "key of https://other.example: False")
}

// A skill that gets the platform values of a Ghost also gets the Ghost's secrets, and
// not those of the group.
func TestSecretsOfGhostWithPlatformValues(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), `{type: streamable-http, url: "${{backend_url}}/mcp/c/sse", headers: {Authorization: "Bearer ${{secrets.KEY}}"}}`)
	x.set(x.meg, x.group, "KEY", "group-k3y")
	x.grant(x.meg, x.group, "", "KEY")
	x.set(x.meg, x.ghost, backendURL, x.first.URL)
	x.grant(x.meg, x.ghost, host(x.first), backendURL)
	x.load(nil, "not configured", "${{secrets.KEY}}")
	x.set(x.meg, x.ghost, "KEY", "ghost-k3y")
	x.grant(x.meg, x.ghost, "", "KEY")
	x.use(nil, "who of first")
	if !x.first.saw("Bearer ghost-k3y") || x.first.saw("Bearer group-k3y") {
		t.Errorf("the server got %v", x.first.auth)
	}
}

// A change to the platform values of others does not replace a user's setup, whose
// servers would restart.
func TestPlatformValuesOfOthersKeepSetup(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	request := assembly.Request{Principal: x.ada, Kind: agents.GhostKind, Namespace: "team", Name: "g"}
	x.set(x.meg, x.group, backendURL, x.first.URL)
	before := x.open(request).Runtime
	for _, c := range []struct {
		change   func()
		replaces bool
	}{
		{func() { x.set(x.bob, agents.NamespaceOwner(own(x.bob)), backendURL, "https://bob.example") }, false},
		{func() { x.grant(x.bob, agents.NamespaceOwner(own(x.bob)), "bob.example", backendURL) }, false},
		{func() { x.set(x.ada, agents.NamespaceOwner(own(x.ada)), "KEY", "k3y") }, false},
		{func() { x.set(x.ada, agents.NamespaceOwner(own(x.ada)), backendURL, "https://ada.example") }, true},
		{func() { x.grant(x.meg, x.group, host(x.first), backendURL) }, true},
		{func() { x.set(x.meg, x.ghost, backendURL, x.first.URL) }, true},
		{func() { x.grant(x.meg, x.ghost, host(x.first), backendURL) }, true},
	} {
		c.change()
		after := x.open(request).Runtime
		if (after != before) != c.replaces {
			t.Errorf("the setup is replaced: %t, want %t", after != before, c.replaces)
		}
		before = after
	}
}

// Users who are not members of a group do not get its values with a published skill.
func TestOutsidersGetNoValuesOfGroup(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	must(t, x.lib.Publish(t.Context(), x.root, x.skill.ID, store.Public))
	x.set(x.meg, x.group, backendURL, x.first.URL)
	x.set(x.meg, x.group, taskToken, "group-t0ken")
	x.grant(x.meg, x.group, host(x.first), backendURL, taskToken)
	x.use(nil, "who of first")
	x.ask(x.eve, x.begin(x.eve, ""), `call load_skill {"name":"s"}`, "not configured", "no names have a value here")
}

// A skill shows neither the host of a value that was not granted to it, nor whether
// the value is an address.
func TestValueWithoutGrantIsNotShown(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	x.apply(x.meg, `{apiVersion: loadout/v1, kind: Ghost, metadata: {name: g, namespace: team}, spec: {}}`)
	spy := x.upload(x.bob, own(x.bob), "spy", tree("spy", "description: x\nmcpServers: {c: {url: \"${{private}}/mcp\", headers: {X: \"${{private}}\"}}}", "x"))
	x.review(spy, library.Approved)
	var first string
	for i, value := range []string{"https://host-of-the-value.example", "not-an-address", "https://user:word@host.example", "two\nlines"} {
		x.set(x.meg, x.ghost, "variable.private", value)
		text := x.ask(x.bob, x.begin(x.bob, "Ghost/team/g"), `call load_skill {"name":"spy"}`, "may not be sent to this address")
		if i == 0 {
			first = text
		}
		if text != first || strings.Contains(text, "host-of-the-value") {
			t.Errorf("for the value %q: %s", value, text)
		}
	}
}

// A revoked grant ends the use of a Ghost's values, and a user's own name needs no
// grant of the same owner.
func TestRevokedPlatformValue(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), `{type: streamable-http, url: "${{backend_url}}/mcp/c/sse", headers: {Authorization: "Bearer ${{task_token}}", X-User: "${{user.name}}"}}`)
	x.set(x.meg, x.ghost, backendURL, x.first.URL)
	x.set(x.meg, x.ghost, taskToken, "ghost-t0ken")
	x.grant(x.meg, x.ghost, host(x.first), backendURL, taskToken)
	x.load(nil, "not configured", "${{user.name}}")
	x.grant(x.ada, agents.NamespaceOwner(own(x.ada)), "", "name")
	id := x.use(nil, "who of first")
	must(t, x.kinds.Secrets().Revoke(t.Context(), x.meg, x.ghost, taskToken, policy.Digest(x.skill.Digest), ""))
	x.ask(x.ada, id, `call load_skill {"name":"s"}`, "may not be sent to this address")
}

// The grants of a platform value can be revoked for one target or for all.
func TestRevokeTarget(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	x.set(x.meg, x.group, backendURL, x.first.URL)
	secrets, digest := x.kinds.Secrets(), policy.Digest(x.skill.Digest)
	targets := func() (out []string) {
		found, err := secrets.Grants(t.Context(), x.meg, x.group)
		must(t, err)
		for _, g := range found {
			out = append(out, g.Target)
		}
		return out
	}
	for _, target := range []string{"a.example", "b.example", "c.example"} {
		x.grant(x.meg, x.group, target, backendURL)
	}
	must(t, secrets.Revoke(t.Context(), x.meg, x.group, backendURL, digest, "b.example"))
	if got := targets(); !slices.Equal(got, []string{"a.example", "c.example"}) {
		t.Errorf("the targets are %v", got)
	}
	must(t, secrets.Revoke(t.Context(), x.meg, x.group, backendURL, digest, ""))
	if got := targets(); len(got) > 0 {
		t.Errorf("the targets are %v", got)
	}
	for _, target := range []string{"", "b.example"} {
		if err := secrets.Revoke(t.Context(), x.meg, x.group, backendURL, digest, target); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoke %q again: %v", target, err)
		}
	}
}

// Values that no skill could get, and targets that no server has, are refused.
func TestUselessPlatformValues(t *testing.T) {
	x := newPlatformWorld(t, sqlite(t), platformServer)
	if err := x.kinds.Secrets().Set(t.Context(), x.meg, agents.SkillOwner(x.skill.ID), backendURL, "https://example.com"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a skill has a platform value: %v", err)
	}
	x.set(x.meg, x.group, backendURL, "https://example.com")
	for _, target := range []string{"https://example.com", "wss://example.com", ""} {
		if err := x.kinds.Secrets().Grant(t.Context(), x.meg, x.group, backendURL, agents.Subject{Kind: agents.SkillKind, Namespace: "team", Name: "s"}, policy.Digest(x.skill.Digest), target); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("target %q: %v", target, err)
		}
	}
}

// Conversations have a bounded number of values, which only tokens that may write
// secrets can set.
func TestValuesOfConversationsAreBounded(t *testing.T) {
	w := sqlite(t)
	id, secrets := agents.SessionOwner(w.begin(w.ada, "")), w.kinds.Secrets()
	for i := range agents.MaxSessionVariables + 1 {
		err := secrets.Set(t.Context(), w.ada, id, fmt.Sprintf("variable.v%d", i), "x")
		if (err == nil) != (i < agents.MaxSessionVariables) {
			t.Errorf("value %d: %v", i, err)
		}
	}
	if err := secrets.Set(t.Context(), w.ada.LimitedTo(account.ScopeChat), id, "variable.v0", "x"); err == nil {
		t.Error("a token for chats only set a value")
	}
	if err := secrets.Set(t.Context(), w.eve, id, "variable.v0", "x"); err == nil {
		t.Error("another user set a value")
	}
	if err := secrets.Grant(t.Context(), w.ada, id, "variable.v0", agents.Subject{Kind: agents.SkillKind, Name: "s"}, "sha256:x", "x.example"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a conversation granted a value: %v", err)
	}
}
