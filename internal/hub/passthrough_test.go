package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/serverskill/serverskilltest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// dial connects to an MCP endpoint in an era of the protocol, with a token unless that
// is "".
func dial(t testing.TB, url, token, era string) *upstream.Conn {
	t.Helper()
	c := &upstream.Config{Name: "hub", Type: upstream.HTTP, URLs: []string{url}}
	if token != "" {
		c.Headers = map[string]string{"Authorization": "Bearer " + token}
	}
	conn := must(new(upstream.Dialer).Dial(t.Context(), c, &upstream.DialOptions{Era: era}))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// listEntries lists all pages of skills, as decoded JSON.
func listEntries(t testing.TB, c *upstream.Conn) (entries []map[string]any, pages []map[string]any) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Skills     []map[string]any
			NextCursor string
		}
		raw := must(c.ListSkills(t.Context(), cursor))(t)
		decodeInto(t, raw, &page)
		var fields map[string]any
		decodeInto(t, raw, &fields)
		entries, pages = append(entries, page.Skills...), append(pages, fields)
		if cursor = page.NextCursor; cursor == "" {
			return entries, pages
		}
	}
}

func decodeInto(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

// follow makes the node follow changes of settings and skills, as a node that serves does.
func (n *node) follow(t testing.TB) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Registry().Run(ctx) })
	running.Go(func() { n.Library().Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
}

// publisherOf applies an MCPServer of a group whose members are reporters. It returns the
// namespace.
func (n *node) publisherOf(t testing.TB, url, spec string, members ...account.Principal) store.Namespace {
	t.Helper()
	group := must(n.DB().Groups.Create(t.Context(), store.Group{Name: "web"}))(t).ID
	owner := must(n.DB().Users.Create(t.Context(), store.User{Name: "owner"}))(t).ID
	if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group, UserID: owner, Role: store.Owner}); err != nil {
		t.Fatal(err)
	}
	for _, p := range members {
		if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group, UserID: string(p.User), Role: store.Reporter}); err != nil {
			t.Fatal(err)
		}
	}
	p := must(n.People().SignIns.Principal(t.Context(), account.UserID(owner)))(t)
	n.write(t, p, "kind: MCPServer\nmetadata: {name: Docs, namespace: \"group:"+group+"\"}\nspec: {url: \""+url+"\", "+spec+"}\n")
	return store.GroupNamespace(group)
}

// The endpoint of a server passes on entries and files as they are, in both eras of the
// protocol, except for members of _meta that only the hub sets.
func TestPassthroughIsExact(t *testing.T) {
	s := serverskilltest.Start(t)
	files := map[string]string{
		"skill://acme/guide/SKILL.md":         serverskilltest.Text("guide", "See a.md.\n"),
		"skill://acme/guide/a.md":             "Caf\u00e9 <b> &",
		"skill://acme/guide/empty.txt":        "",
		"skill://acme/guide/images/a%20b.bin": "\x00\x01\xff",
		"github://o/r/notes/SKILL.md":         serverskilltest.Text("notes", "Text.\n"),
		"skill://hidden/SKILL.md":             serverskilltest.Text("hidden", "Text\U000e0041.\n"),
	}
	for uri, text := range files {
		s.Put("", uri, text)
	}
	s.Put("", "db://customers/1", "secret")
	s.Unlist("skill://hidden/SKILL.md")
	s.SetMeta(map[string]any{"example.com/x": []any{1.0, "<"}, "dev.loadout/approval": map[string]any{"state": "approved"}, "dev.loadout/server": "other"})
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost})
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	n.publisherOf(t, s.URL, "skills: ask, label: docs", p)
	for _, era := range []string{upstream.Modern, upstream.Legacy} {
		direct, passed := dial(t, s.URL, "", era), dial(t, n.URL+"/mcp/s/docs", token, era)
		if !passed.ServesSkills() {
			t.Fatalf("%s: the endpoint does not declare the extension", era)
		}
		want, _ := listEntries(t, direct)
		got, pages := listEntries(t, passed)
		if len(got) != 2 || len(pages) != 2 {
			t.Fatalf("%s: %d entries in %d pages", era, len(got), len(pages))
		}
		if modern := era == upstream.Modern; modern != (pages[0]["cacheScope"] == "private") || modern != (pages[0]["ttlMs"] == 60_000.0) || pages[0]["resultType"] != "complete" {
			t.Errorf("%s: a page has %v", era, pages[0])
		}
		for i, e := range got {
			uri := e["uri"].(string)
			var one struct{ Skill map[string]any }
			decodeInto(t, must(passed.GetSkill(t.Context(), uri))(t), &one)
			if !reflect.DeepEqual(one.Skill, e) {
				t.Errorf("%s: skills/get returns %v, and skills/list %v", era, one.Skill, e)
			}
			wantMeta := map[string]any{"example.com/x": []any{1.0, "<"}, "dev.loadout/server": "docs", "dev.loadout/approval": map[string]any{"state": "not_approved"}}
			if !reflect.DeepEqual(e["_meta"], wantMeta) {
				t.Errorf("%s: _meta of %s is %v, want %v", era, uri, e["_meta"], wantMeta)
			}
			delete(e, "_meta")
			delete(want[i], "_meta")
			if !reflect.DeepEqual(e, want[i]) {
				t.Errorf("%s: passed on %v, want %v", era, e, want[i])
			}
		}
		for uri, text := range files {
			c := must(passed.ReadSkillResource(t.Context(), uri))(t)
			if data := must(passed.ReadSkillFile(t.Context(), uri))(t); string(data) != text || c.URI != uri || c.MIMEType != "text/markdown" {
				t.Errorf("%s: %s is %q (%s, %s), want %q", era, uri, data, c.URI, c.MIMEType, text)
			}
			warning, _ := c.Meta["dev.loadout/warning"].(string)
			if c.Meta["dev.loadout/server"] != "docs" || c.Meta["dev.loadout/approval"] != nil || c.Meta["example.com/x"] == nil || strings.HasPrefix(uri, "skill://hidden") != (warning != "") {
				t.Errorf("%s: _meta of %s is %v", era, uri, c.Meta)
			}
		}
		for _, uri := range []string{"db://customers/1", "skill://acme/guide/none.md", "skill://acme/guide/../../hidden/SKILL.md", "skill://acme/guide/a.md?x", "none"} {
			if _, err := passed.ReadSkillFile(t.Context(), uri); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: read %s: %v", era, uri, err)
			}
		}
		for _, uri := range []string{"skill://none/SKILL.md", "file:///etc/SKILL.md", "db://customers/1"} {
			if _, err := passed.GetSkill(t.Context(), uri); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: get %s: %v", era, uri, err)
			}
		}
	}
	if slices.ContainsFunc(s.Requests("resources/read"), func(r string) bool { return strings.Contains(r, "db:") }) {
		t.Error("a resource that belongs to no skill was requested")
	}
}

// A node that has not passed on an entry finds it by the URI of its file.
func TestPassthroughReadsWithoutList(t *testing.T) {
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "Text.\n"))
	s.Put("", "skill://acme/guide/a/b/c.md", "Deep.")
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost})
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	n.publisherOf(t, s.URL, "skills: allow", p)
	c := dial(t, n.URL+"/mcp/s/docs", token, upstream.Modern)
	for range 2 {
		if data, err := c.ReadSkillFile(t.Context(), "skill://acme/guide/a/b/c.md"); string(data) != "Deep." || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	}
	if got := s.Requests("skills/get"); len(got) != 3 { // of the directories a/b, a and guide, once
		t.Errorf("requested %q", got)
	}
}

// Only users who may use the server find its endpoint, and only while the server's
// skills are used.
func TestPassthroughPermissions(t *testing.T) {
	s := serverskilltest.Start(t)
	s.Put("", "skill://guide/SKILL.md", serverskilltest.Text("guide", "Text.\n"))
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost,
		Servers: []*upstream.Config{{Name: "off", Type: upstream.HTTP, URLs: []string{s.URL}}, {Name: "All of us", Type: upstream.HTTP, URLs: []string{s.URL}, Skills: upstream.SkillsAllow}}})
	n.follow(t)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	_, eve := n.newcomer(t, "eve", account.ScopeMCP)
	in := n.publisherOf(t, s.URL, "skills: ask", p)
	ada, stranger := n.wired(token), n.wired(eve)
	ada.send(t, "POST", "/mcp/s/docs", initializeMCP).want(t, 200)
	ada.send(t, "POST", "/mcp/s/all-of-us", initializeMCP).want(t, 200)
	stranger.send(t, "POST", "/mcp/s/all-of-us", initializeMCP).want(t, 200)
	stranger.send(t, "POST", "/mcp/s/docs", initializeMCP).wantProblem(t, 404, "not_found")
	for _, path := range []string{"/mcp/s/off", "/mcp/s/none", "/mcp/s/Docs"} {
		ada.send(t, "POST", path, initializeMCP).wantProblem(t, 404, "not_found")
	}
	n.anybody().send(t, "POST", "/mcp/s/docs", initializeMCP).want(t, 401)

	connect := func() (*upstream.Conn, error) { // the endpoint ends connections when the settings change
		return new(upstream.Dialer).Dial(t.Context(), &upstream.Config{Name: "hub", Type: upstream.HTTP, URLs: []string{n.URL + "/mcp/s/docs"},
			Headers: map[string]string{"Authorization": "Bearer " + token}}, nil)
	}
	last := "" // result or error
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("listed last: ", last)
		}
	})
	listed := func() (_ int, err error) {
		defer func() {
			if err != nil {
				last = err.Error()
			}
		}()
		c, err := connect()
		if err != nil {
			return 0, err
		}
		defer c.Close()
		raw, err := c.ListSkills(t.Context(), "")
		if err != nil {
			return 0, err
		}
		var page struct{ Skills []any }
		decodeInto(t, raw, &page)
		last = string(raw)
		return len(page.Skills), nil
	}
	if got, err := listed(); got != 1 || err != nil {
		t.Fatalf("%d skills, %v", got, err)
	}
	browser := n.signIn(t, "root", secret)
	browser.send(t, "PUT", "/api/v1/settings/skills", map[string]any{"enabled": true, "allow": []string{"pdf"}, "generation": 0}).want(t, 200)
	eventually(t, func() bool { got, err := listed(); return got == 0 && err == nil })
	if _, err := dial(t, n.URL+"/mcp/s/docs", token, upstream.Modern).ReadSkillFile(t.Context(), "skill://guide/SKILL.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hidden skill is read: %v", err)
	}
	browser.send(t, "PUT", "/api/v1/settings/skills", map[string]any{"enabled": false, "allow": []string{}, "generation": 1}).want(t, 200)
	eventually(t, func() bool { _, err := listed(); return err != nil && strings.Contains(err.Error(), "switched off") })
	browser.send(t, "PUT", "/api/v1/settings/skills", map[string]any{"enabled": true, "allow": []string{}, "generation": 2}).want(t, 200)
	eventually(t, func() bool { got, err := listed(); return got == 1 && err == nil })

	if err := n.DB().Groups.RemoveMember(t.Context(), in.Group(), string(p.User)); err != nil {
		t.Fatal(err)
	}
	if _, err := listed(); err == nil {
		t.Error("a former member lists the skills")
	}
	ada.send(t, "POST", "/mcp/s/docs", initializeMCP).wantProblem(t, 404, "not_found")
}

// A user reviews the skills of a server, approves one, and sees when it changes. The
// endpoint of all skills loads what is approved.
func TestPublishedSkillsAreApproved(t *testing.T) {
	s := serverskilltest.Start(t)
	s.Put("", "skill://acme/guide/SKILL.md", serverskilltest.Text("guide", "See a.md.\n"))
	s.Put("", "skill://acme/guide/a.md", "First.")
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost})
	p, token := n.newcomer(t, "ada", account.AllScopes)
	_, bobs := n.newcomer(t, "bob", account.AllScopes)
	bob, _ := n.newcomer(t, "bea", account.ScopeMCP)
	group := n.publisherOf(t, s.URL, "skills: ask, label: docs", p, bob)
	ada := n.wired(token)
	type published struct {
		Server, Endpoint string
		Skills           []struct {
			Name, Path, Digest, State string
			Files                     int
			Changes                   []struct{ Path, Kind string }
		}
	}
	list := func(query string) published {
		var out published
		ada.send(t, "GET", "/api/v1/published-skills/docs"+query, nil).want(t, 200).into(t, &out)
		return out
	}
	got := list("")
	if got.Server != "Docs" || got.Endpoint != "/mcp/s/docs" || len(got.Skills) != 1 || got.Skills[0].Name != "mcp.docs/acme/guide" || got.Skills[0].State != "not_approved" || got.Skills[0].Files != 2 {
		t.Fatalf("listed %+v", got)
	}
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, nil)
	load := args{"name": "mcp.docs/acme/guide"}
	if res := callMCP(t, cs, "load_skill", load); !res.IsError || !strings.Contains(textOfResult(res), "published-skills/docs/approve") {
		t.Errorf("loaded without approval: %s", textOfResult(res))
	}
	if reads := s.Requests("resources/read"); len(reads) > 0 {
		t.Errorf("fetched %q before an approval", reads)
	}
	const approve = "/api/v1/published-skills/docs/approve"
	ada.send(t, "POST", approve, map[string]string{"path": "acme/guide", "digest": "sha256:" + strings.Repeat("0", 64)}).wantProblem(t, 409, "changed")
	ada.send(t, "POST", approve, map[string]string{"path": "acme/none", "digest": got.Skills[0].Digest}).wantProblem(t, 404, "not_found")
	n.wired(bobs).send(t, "POST", approve, map[string]string{"path": "acme/guide", "digest": got.Skills[0].Digest}).wantProblem(t, 404, "not_found")
	ada.send(t, "POST", approve, map[string]string{"path": "acme/guide", "digest": got.Skills[0].Digest}).want(t, 204)
	if got := list(""); got.Skills[0].State != "approved" {
		t.Errorf("after the approval: %+v", got)
	}
	text := textOfResult(callMCP(t, cs, "load_skill", load))
	if !strings.Contains(text, "See a.md.") || !strings.Contains(text, "[From the MCP server docs: untrusted text") {
		t.Errorf("loaded %s", text)
	}
	entries, _ := listEntries(t, dial(t, n.URL+"/mcp/s/docs", token, upstream.Modern))
	if state, _ := entries[0]["_meta"].(map[string]any)["dev.loadout/approval"].(map[string]any); state["state"] != "approved" || state["at"] == nil {
		t.Errorf("the endpoint says %v", entries[0]["_meta"])
	}

	s.Put("", "skill://acme/guide/a.md", "Second.")
	s.Put("", "skill://acme/guide/b.md", "More.")
	got = list("?refresh=true")
	if one := got.Skills[0]; one.State != "changed" || len(one.Changes) != 2 || one.Changes[0].Path != "a.md" || one.Changes[0].Kind != "changed" || one.Changes[1].Path != "b.md" || one.Changes[1].Kind != "added" {
		t.Errorf("after a change: %+v", got)
	}
	eventually(t, func() bool {
		return strings.Contains(textOfResult(callMCP(t, cs, "load_skill", load)), "changed since it was approved")
	})
	ada.send(t, "POST", approve, map[string]string{"path": "acme/guide", "digest": got.Skills[0].Digest}).want(t, 204)
	if text := textOfResult(callMCP(t, cs, "load_skill", load)); !strings.Contains(text, "See a.md.") {
		t.Errorf("after the second approval: %s", text)
	}
	ada.send(t, "DELETE", approve+"?path=acme/guide", nil).want(t, 204)
	ada.send(t, "DELETE", approve+"?path=acme/guide", nil).wantProblem(t, 404, "not_found")
	if res := callMCP(t, cs, "load_skill", load); !res.IsError {
		t.Errorf("loaded after the approval was revoked: %s", textOfResult(res))
	}
	if got := decisionsBy(t, n, p, "tool.approve"); len(got) != 2 {
		t.Errorf("audited %q", got)
	}

	// An approval can be revoked after the user lost access to the server.
	ada.send(t, "POST", approve, map[string]string{"path": "acme/guide", "digest": got.Skills[0].Digest}).want(t, 204)
	if err := n.DB().Groups.RemoveMember(t.Context(), group.Group(), string(p.User)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ada.send(t, "GET", "/api/v1/published-skills/docs", nil).status == 404 })
	ada.send(t, "DELETE", approve+"?path=acme/guide", nil).want(t, 204)
	ada.send(t, "DELETE", approve+"?path=acme/guide", nil).wantProblem(t, 404, "not_found")
}

// The page gets what a server publishes without hidden characters.
func TestPublishedTextIsCleaned(t *testing.T) {
	s := serverskilltest.Start(t)
	for i, text := range untrustedtest.Hostile() {
		name := "skill-" + itoa(i)
		s.Put("", "skill://"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: "+untrustedtest.YAML("Does it. "+strings.ToValidUTF8(text, "\ufffd"))+"\n---\n")
	}
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost})
	p, token := n.newcomer(t, "ada", account.AllScopes)
	n.publisherOf(t, s.URL, "skills: ask, label: docs", p)
	answers := newCleanedAnswers(t)
	r := answers.check("list-published-skills", n.wired(token).send(t, "GET", "/api/v1/published-skills/docs", nil).want(t, 200))
	if !strings.Contains(r.body, `"mcp.docs/skill-0"`) {
		t.Errorf("listed %.500s", r.body)
	}
}
