package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

// exactTexts lists the operations, or parts of their responses, whose texts are exact,
// with the reason.
var exactTexts = map[string]string{
	"check-draft.instructions":            "the text of the author's file",
	"check-draft.diagnostics[].edit.text": "replaces a part of the author's file",
	"check-draft.files[].path":            "the path of the author's file",
	"find-draft.items[].query":            "the request's own text",
	"get-file":                            "a file",
	"get-kind.spec":                       "a document that clients change and apply again",
	"list-kinds.items[].spec":             "documents that clients change and apply again",
	"get-package":                         "files",
	"read-session-file":                   "a file",
	"get-shared-file":                     "a file",
	"open-socket":                         "not JSON; it has the events of watch-session",
}

// withoutAnswer lists the operations that need more than the test sets up.
var withoutAnswer = map[string]string{
	"get-upgrade":           "an imported skill",
	"list-published-skills": "an MCP server; see TestPublishedTextIsCleaned",
	"read-session-image":    "a message with an image, which has no text",
}

// cleanedAnswers checks that responses have no disallowed characters, except in
// exactTexts.
type cleanedAnswers struct {
	t    *testing.T
	leak map[string]bool // by operation and path
	ok   map[string]bool // operations with a successful response
}

func newCleanedAnswers(t *testing.T) *cleanedAnswers {
	return &cleanedAnswers{t, map[string]bool{}, map[string]bool{}}
}

// check checks the response of an operation, and returns it. The body is a JSON value,
// one in each line, or text.
func (c *cleanedAnswers) check(op string, r reply) reply {
	c.t.Helper()
	c.ok[op] = c.ok[op] || r.status < 300
	for line := range strings.Lines(r.body) {
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "data: ")
		var v any
		if json.Unmarshal([]byte(line), &v) != nil {
			v = line
		}
		eachString(v, op, func(path, s string) {
			if report := untrusted.Inspect(s); !report.Clean() && !c.leak[path] && !isExact(path) {
				c.leak[path] = true
				c.t.Errorf("%s: %s in %+q", path, report, s)
			}
		})
	}
	return r
}

func isExact(path string) bool {
	for p := range exactTexts {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || strings.ContainsAny(rest[:1], ".[ ")) {
			return true
		}
	}
	return false
}

// eachString calls f with each string of a decoded JSON value and its path, in
// which [] stands for an index.
func eachString(v any, path string, f func(path, s string)) {
	switch v := v.(type) {
	case string:
		f(path, v)
	case []any:
		for _, e := range v {
			eachString(e, path+"[]", f)
		}
	case map[string]any:
		for k, e := range v {
			f(path+" key", k)
			eachString(e, path+"."+k, f)
		}
	}
}

// fill returns a path with values in place of its parameters.
func fill(path string, values map[string]string) string {
	for name, value := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return path
}

// Each text of others reaches the page and other programs without hidden characters, in
// every response of the API that is not exact on purpose.
func TestHostileTextIsCleanedInEveryAnswer(t *testing.T) {
	c := newGroupHub(t, "")
	paths := readDocument(t, c.node).operations()
	answers := newCleanedAnswers(t)
	ask := func(who caller, op string, values map[string]string, query string, body any) reply {
		t.Helper()
		method, path, _ := strings.Cut(paths[op], " ")
		return answers.check(op, who.send(t, method, fill(path, values)+query, body))
	}
	session := c.maintainer.begin(t)
	values := map[string]string{"group": c.group, "user": c.ids["maintainer"], "session": strings.TrimPrefix(session, "/api/v1/sessions/"), "version": "1",
		"namespace": "team", "secret": "KEY", "name": "ghost-0", "kind": "Ghost"}
	ask(c.maintainer, "set-secret", values, "", map[string]string{"value": "x"})
	ofSkills := slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(op string) bool {
		return !strings.HasPrefix(paths[op], "GET ") || !strings.Contains(paths[op], "{skill}") || exactTexts[op] != ""
	})
	for i, text := range untrustedtest.Hostile() {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\x01") // what JSON and the store accept
		n := strconv.Itoa(i)
		md, short := untrustedtest.Skill("skill-"+n, text), string([]rune(text)[:min(200, len([]rune(text)))])
		made := ask(c.developer, "create-skill", nil, "?namespace="+c.in+"&changelog="+url.QueryEscape(short),
			inForm(t, "skill-"+n+".zip", zipOf(t, "skill-"+n, fstest.MapFS{"SKILL.md": {Data: []byte(md)}, "scripts/run.sh": {Data: []byte("exit\n")}}))).want(t, 201)
		values["skill"] = made.text(t, "id")
		source := store.SourceCheck{SkillID: values["skill"], Error: "No: " + short}
		if err := errors.Join(c.node.DB().Skills.Update(t.Context(), source.SkillID, "", []byte(`{"kind": "git", "url": "https://127.0.0.1/x.git", "dir": "."}`)), c.node.DB().SourceChecks.Record(t.Context(), source)); err != nil {
			t.Fatal(err)
		}
		ask(c.maintainer, "get-skill", values, "", nil).want(t, 200)
		if untrustedtest.Selected(i, 0) {
			draft := files(file("SKILL.md", md))
			ask(c.developer, "check-draft", nil, "", draft).want(t, 200)
			draft["queries"] = []string{"skill", text}
			ask(c.developer, "find-draft", nil, "", draft).want(t, 200)
		}
		ask(c.maintainer, "rate-skill", values, "", map[string]any{"stars": 1, "words": text}).want(t, 204)
		review := map[string]any{"decision": "changes-requested", "digest": made.text(t, "digest"), "note": "No: " + text}
		ask(c.maintainer, "review-version", values, "", review).want(t, 204)
		var status struct{ Requests []struct{ ID string } }
		ask(c.maintainer, "get-review", values, "", nil).want(t, 200).into(t, &status)
		values["request"] = status.Requests[0].ID
		ask(c.root, "dismiss-changes", values, "", map[string]string{"reason": "So: " + text}).want(t, 204)
		review["decision"] = "pending"
		ask(c.maintainer, "review-version", values, "", review).want(t, 204)
		comment := ask(c.maintainer, "add-comment", values, "", map[string]any{"path": "SKILL.md", "line": 3, "text": "Why? " + text}).want(t, 201).text(t, "comment")
		values["comment"] = comment
		ask(c.maintainer, "change-comment", values, "", map[string]any{"text": "So? " + text}).want(t, 200)
		ask(c.maintainer, "resolve-comment", values, "", map[string]any{"resolved": true}).want(t, 200)
		if i%5 == 0 { // slow, and at most 200 defaults
			ask(c.maintainer, "set-default", values, "", map[string]any{}).want(t, 200)
			ask(c.maintainer, "load-session-skill", values, "", map[string]string{"name": "skill-" + n}).want(t, 200)
		}
		if untrustedtest.Selected(i, 1) {
			ask(c.maintainer, "change-session", values, "", map[string]string{"title": text})
			ask(c.maintainer, "create-folder", nil, "", map[string]string{"name": text + n})
			ask(c.maintainer, "make-token", nil, "", map[string]any{"name": text, "scopes": []string{"read"}})
			ask(c.root, "make-group", nil, "", map[string]string{"name": "group-" + n, "display": text, "description": text})
			ask(c.root, "change-user", values, "", map[string]string{"display": text})
			ask(c.root, "change-user", map[string]string{"user": "me"}, "", map[string]string{"display": text})
			ask(c.root, "change-group", values, "", map[string]string{"display": text})
		}
		if i%5 == 0 { // at most 100
			invited := ask(c.root, "create-invitation", nil, "", map[string]string{"group": c.group, "note": text})
			ask(c.maintainer, "get-invitation", map[string]string{"link": invited.text(t, "link")}, "", nil)
		}
		quoted := untrustedtest.YAML(text)
		for kind, spec := range map[string]string{
			"Ghost":     "{systemPrompt: " + quoted + ", mcpServers: {wiki: {url: \"https://x.example.com/mcp\", headers: {X: " + quoted + "}}}}",
			"MCPServer": "{command: " + quoted + ", args: [" + quoted + "], env: {X: " + quoted + "}}",
		} {
			ask(c.maintainer, "apply", nil, "", typed{"application/yaml", fmt.Sprintf("kind: %s\nmetadata: {name: %s-%s, namespace: team, description: %s}\nspec: %s\n", kind, strings.ToLower(kind), n, quoted, spec)})
		}
		for j, op := range ofSkills {
			if untrustedtest.Selected(i, j) {
				ask(c.maintainer, op, values, map[string]string{"get-diff": "?from=none"}[op], nil)
			}
		}
		ask(c.maintainer, "check-source", values, "", nil).want(t, 200)
		if untrustedtest.Selected(i, 2) {
			ask(c.maintainer, "search-skills", nil, "?q=skill-"+n, nil)
			ask(c.maintainer, "explain-skill", nil, "?name=skill-"+n, nil)
			ask(c.maintainer, "resolve-skill", nil, "?name=skill-"+n, nil)
			ask(c.maintainer, "list-notices", nil, "?limit=15", nil)
			ask(c.developer, "list-notices", nil, "?limit=15", nil)
			ask(c.maintainer, "list-members", values, "", nil)
			ask(c.root, "list-audit", nil, "?limit=60", nil)
		}
	}
	c.maintainer.talk(t, session, "hello")
	preview := ask(c.maintainer, "preview-share", values, "", nil).want(t, 200)
	values["link"] = ask(c.maintainer, "share-session", values, "", map[string]string{"digest": preview.text(t, "digest")}).want(t, 201).text(t, "link")
	for op, at := range paths {
		if !strings.HasPrefix(at, "GET ") || strings.Contains(at, "{skill}") || exactTexts[op] != "" {
			continue
		}
		query := map[string]string{"watch-session": "?follow=false", "search-skills": "?q=skill", "search-sessions": "?q=hello", "explain-skill": "?name=skill-0", "resolve-skill": "?name=skill-0"}[op]
		for _, who := range []caller{c.maintainer, c.root} {
			ask(who, op, values, query, nil)
		}
	}
	for _, kind := range []string{"Ghost", "MCPServer", "Skill"} {
		values["kind"], values["name"] = kind, strings.ToLower(kind)+"-0"
		for _, op := range []string{"list-kinds", "get-kind", "get-profile", "get-servers", "list-referrers"} {
			ask(c.maintainer, op, values, map[string]string{"list-kinds": "?limit=500"}[op], nil)
		}
	}
	for _, op := range []string{"list-groups", "list-servers", "list-skills", "list-reviews"} {
		ask(c.root, op, nil, "?limit=500", nil)
	}
	for op, at := range paths {
		if strings.HasPrefix(at, "GET ") && !answers.ok[op] && exactTexts[op] == "" && withoutAnswer[op] == "" {
			t.Errorf("%s: no successful response", op)
		}
	}
}

// Errors repeat arguments: parts of paths, queries, and names in documents and packages.
// Each operation gets one text of each kind; TestTextsOfProblemsAreCleaned in package api
// covers all texts.
func TestHostileArgumentsAreCleanedInErrors(t *testing.T) {
	c := newGroupHub(t, "")
	doc := readDocument(t, c.node)
	answers := newCleanedAnswers(t)
	session := c.maintainer.begin(t)
	texts := []string{"a\U000e0069\U000e0067", "a\u202eb", "\x1b[2Ja", "a\u200bb", "a\x00b", "a\xffb", "a\ufe0fb", "a\u009b2J", "a\r\nb\u2028c"}
	for _, text := range texts {
		query := url.Values{}
		for path, item := range doc.Paths {
			for method, op := range item {
				at, values := path, map[string]string{}
				clear(query)
				for _, p := range op.Parameters {
					values[p.Name] = text
					if p.In == "query" {
						query.Set(p.Name, text)
					}
				}
				for _, with := range []map[string]string{values, {"kind": "Ghost", "namespace": "default", "name": text}, {"kind": "Skill", "namespace": text, "name": "x"}} {
					answers.check(op.OperationID, c.root.send(t, strings.ToUpper(method), fill(at, with)+"?"+query.Encode(), map[string]string{"name": text, text: text, "kind": text}))
				}
			}
		}
	}
	for i, text := range untrustedtest.Hostile() {
		text = strings.ToValidUTF8(text, "\ufffd")
		quoted := untrustedtest.YAML(text)
		for j, document := range []string{
			"kind: " + quoted + "\nmetadata: {name: x}\n", "apiVersion: " + quoted + "\nkind: Ghost\nmetadata: {name: x}\nspec: {}\n", "kind: Ghost\nmetadata: {name: " + quoted + "}\nspec: {}\n",
			"kind: Ghost\nmetadata: {name: x, namespace: " + quoted + "}\nspec: {}\n", "kind: Ghost\nmetadata: {name: x}\nspec: {" + quoted + ": 1, skills: [" + quoted + "], mcpServers: {" + quoted + ": {command: x}}, policy: [" + quoted + "]}\n",
			"kind: Bot\nmetadata: {name: x}\nspec: {ghostRef: {name: " + quoted + "}}\n", "kind: Model\nmetadata: {name: x}\nspec: {vendor: " + quoted + ", model: " + quoted + "}\n", "kind: Skill\nmetadata: {name: x}\nspec: {description: 1, " + quoted + ": " + quoted + "}\n",
		} {
			if untrustedtest.Selected(i, j) {
				answers.check("apply", c.developer.send(t, "POST", "/api/v1/apply?dry=true", typed{"application/yaml", document}))
			}
		}
		for _, name := range []string{text, "Ghost/default/" + text, "Ghost/" + text + "/x", text + "/default/x"} {
			answers.check("apply", c.developer.send(t, "POST", "/api/v1/apply?delete="+url.QueryEscape(name), nil))
		}
		answers.check("load-session-skill", c.maintainer.send(t, "POST", session+"/skills", map[string]string{"name": text}))
		answers.check("check-draft", c.developer.send(t, "POST", "/api/v1/drafts/check", files(file("SKILL.md", "---\nname: "+quoted+"\n"+quoted+": "+quoted+"\n---\n"), file(text, "x"), file("scripts/"+text, "x"))))
		answers.check("create-skill", c.developer.send(t, "POST", "/api/v1/skills?file_name="+url.QueryEscape(text)+".zip", typed{"application/zip", text}))
		answers.check("test-server", c.developer.send(t, "POST", "/api/v1/servers/test", map[string]any{"name": text, "config": map[string]any{"url": text, text: text}}))
	}
}

// Servers of others describe their tools, and fail, in their own words.
func TestHostileTextOfServersIsCleaned(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1"}, nil)
	for i, text := range untrustedtest.Hostile() {
		text = strings.ToValidUTF8(text, "\ufffd")
		schema := map[string]any{"type": "object", "description": text, "properties": map[string]any{"x": map[string]any{"type": "string", "description": text, "enum": []string{text}}}}
		server.AddTool(&mcp.Tool{Name: "tool-" + strconv.Itoa(i), Title: text, Description: text, InputSchema: schema, Annotations: &mcp.ToolAnnotations{Title: text}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	failing := ""
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failing != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTeapot)
			json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "error": map[string]any{"code": -32000, "message": failing, "data": failing}})
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	_, _, ada := rootAndAda(t, hub.Options{Private: loopback})
	answers := newCleanedAnswers(t)
	draft := map[string]any{"config": map[string]any{"url": web.URL}}
	tried := ada.test(t, draft)
	if !tried.Success || len(tried.Tools) != len(untrustedtest.Hostile()) {
		t.Fatalf("%d tools, %s", len(tried.Tools), tried.Error)
	}
	answers.check("test-server", ada.send(t, "POST", "/api/v1/servers/test", draft))
	ada.apply(t, "", "kind: MCPServer\nmetadata: {name: wiki}\nspec: {url: \""+web.URL+"\"}\n").want(t, 200)
	if r := answers.check("list-capabilities", ada.send(t, "GET", "/api/v1/capabilities?connect=true", nil).want(t, 200)); !strings.Contains(r.body, "tool-7") {
		t.Fatalf("no tools: %.300q", r.body)
	}
	answers.check("list-servers", ada.send(t, "GET", "/api/v1/servers", nil).want(t, 200))
	for _, failing = range untrustedtest.Hostile() {
		failing = "No: " + strings.ToValidUTF8(failing, "\ufffd")
		answers.check("test-server", ada.send(t, "POST", "/api/v1/servers/test", draft).want(t, 200))
	}
}
