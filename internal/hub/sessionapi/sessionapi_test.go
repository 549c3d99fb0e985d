package sessionapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/usage"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var request = hubtest.NewRequest

// readEvents returns the events of a conversation until the first one that contains
// text, in the format of the stream.
func readEvents(t *testing.T, c *hubtest.Client, id, text string) string {
	t.Helper()
	for {
		r := c.Must("GET", "/sessions/"+id+"/events?follow=false", nil)
		if strings.Contains(r.Body, text) {
			return r.Body
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("no %s in %s", text, r.Body)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSessions(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	root := h.SignIn("root")
	_, user := root.NewUser("ada")
	_, stranger := root.NewUser("bob")
	began := user.Must("POST", "/sessions", `{"title": "Tides", "message": "Hello."}`)
	id := began.Text("id")
	at := "/sessions/" + id
	if !strings.Contains(began.Body, `"input":`) || !strings.HasSuffix(began.Header.Get("Location"), at) {
		t.Errorf("began %s at %q", began.Body, began.Header.Get("Location"))
	}
	user.Check(
		request("POST", "/sessions", `{}`, 201, `!"input":`),
		request("POST", "/sessions", `{"title": "`+strings.Repeat("x", 1024)+`"}`, 201, ""),
		request("POST", "/sessions", `{"title": "`+strings.Repeat("x", 1025)+`"}`, 422, ""),
		request("GET", "/sessions", nil, 200, `"title":"Tides"`),
		request("GET", "/sessions?limit=2", nil, 200, `"next": & !"title":"Tides"`),
		request("GET", at, nil, 200, `"title":"Tides"`),
		request("GET", "/sessions/none", nil, 404, ""),
		request("PATCH", at, `{"title": "Tide: tables?"}`, 200, `"title":"Tide: tables?"`),
		request("PATCH", "/sessions/none", `{"title": "x"}`, 404, ""),
	)
	stranger.Check(request("GET", at, nil, 404, ""), request("GET", at+"/events?follow=false", nil, 404, ""), request("GET", at+"/export", nil, 404, ""), request("GET", "/sessions", nil, 200, `"items":[]`))

	events := readEvents(t, user, id, "event: ended")
	if !strings.HasPrefix(events, ": events\n\nid: 1\nevent: ") || !strings.Contains(events, "Hello.") {
		t.Errorf("events %.400s", events)
	}
	user.Check(
		request("GET", at+"/messages", nil, 200, `Hello. & "told": & !"next"`),
		request("GET", at+"/messages?limit=1", nil, 200, `Hello. & "next":"`),
		request("GET", at+"/messages?limit=201", nil, 422, ""),
		request("GET", at+"/messages?after=-1", nil, 422, "query.after & not a number of an event"),
		request("GET", at+"/messages?after=x", nil, 422, "query.after"),
		request("GET", at+"/messages?after=0", nil, 200, "Hello."),
		request("GET", "/sessions/none/messages", nil, 404, ""),
		request("POST", at+"/messages", `{"text": ""}`, 422, ""),
		request("POST", "/sessions/none/messages", `{"text": "x"}`, 404, ""),
		request("GET", at+"/events?follow=false&after=x", nil, 422, "query.after"),
		request("GET", at+"/events?follow=false&after=1", nil, 200, "!id: 1\n & id: 2\n"),
	)
	user.With("Last-Event-ID", "x").Check(request("GET", at+"/events?follow=false&after=1", nil, 422, "header.Last-Event-ID"))
	user.With("Last-Event-ID", "2").Check(request("GET", at+"/events?follow=false", nil, 200, "!id: 2\n & id: 3\n"))
	if r := user.Send(t.Context(), "HEAD", at+"/events", nil); r.Status != 200 || r.Body != "" || r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("HEAD: %+v", r)
	}
	user.CheckFailures("/sessions", at, at+"/messages", at+"/usage", at+"/skills", at+"/files", "/asks")

	user.Check(
		request("GET", at+"/messages", nil, 200, `"after":0 & !"versions"`),
		request("POST", at+"/messages", `{"text": "Hello again.", "after": 0}`, 202, `"input":`),
		request("POST", at+"/messages", `{"text": "x", "after": -1}`, 422, "body.after"),
		request("POST", at+"/messages", `{"text": "x", "after": 1000}`, 422, "after step 1000"),
		request("POST", at+"/branch", `{"after": 1000}`, 422, "after step 1000"),
		request("POST", at+"/branch", `{}`, 422, "after"),
		request("POST", "/sessions/none/branch", `{"after": 0}`, 404, ""),
	)
	readEvents(t, user, id, `"input":2,"reason":`)
	user.Check(
		request("GET", at+"/messages", nil, 200, `Hello again. & "versions":[{"seq":`),
		request("POST", at+"/branch", `{"after": 0}`, 202, `"input":3`),
	)
	readEvents(t, user, id, `"input":3,"reason":`)
	user.Check(
		request("GET", at+"/messages", nil, 200, `"items":[] & "versions":[{"seq":`),
		request("POST", at+"/compact", nil, 202, `"input":`),
		request("POST", "/sessions/none/compact", nil, 404, ""),
		request("POST", at+"/cancel", nil, 204, ""),
		request("POST", "/sessions/none/cancel", nil, 404, ""),
		request("DELETE", at, nil, 204, ""),
		request("GET", at, nil, 404, ""),
		request("DELETE", at, nil, 404, ""),
	)
}

// A conversation is not changed if its model cannot be: it is unknown, or its key is
// missing.
func TestModelOfSession(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	_, user := h.SignIn("root").NewUser("ada")
	user.Must("PUT", "/kinds/Model/default/big", `{"kind": "Model", "metadata": {"name": "big"}, "spec": {"vendor": "anthropic", "model": "big", "apiKey": "${{secrets.KEY}}"}}`)
	user.Must("PUT", "/kinds/Model/default/free", `{"kind": "Model", "metadata": {"name": "free"}, "spec": {"vendor": "demo"}}`)
	models := regexp.MustCompile(`"name":"(big|free)".*?"id":"([^"]+)"`).FindAllStringSubmatch(user.Must("GET", "/models", nil).Body, -1)
	if len(models) != 2 {
		t.Fatalf("the models are %q", models)
	}
	at := "/sessions/" + user.Must("POST", "/sessions", `{"title": "Tides"}`).Text("id")
	user.Check(
		request("PATCH", at, `{"title": "Changed", "model": "none"}`, 422, `"code":"no_model"`),
		request("PATCH", at, `{"title": "Changed", "model": "`+models[0][2]+`"}`, 422, `"code":"model_key"`),
		request("GET", at, nil, 200, `"title":"Tides"`),
		request("PATCH", at, `{"title": "Changed", "model": "`+models[1][2]+`"}`, 200, `"title":"Changed"`),
	)
}

// A message that is sent twice with one key is queued once.
func TestMessageKeys(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	at := "/sessions/" + c.Must("POST", "/sessions", `{}`).Text("id") + "/messages"
	with := func(key string) string {
		return c.With("Idempotency-Key", key).Must("POST", at, `{"text": "Once."}`).Body
	}
	first := with("key-1")
	if again := with(`"key-1"`); again != first {
		t.Errorf("sent again: %s, want %s", again, first)
	}
	if other := with("key-2"); other == first {
		t.Errorf("another key: %s", other)
	}
	c.With("Idempotency-Key", strings.Repeat("k", 201)).Check(request("POST", at, `{"text": "Once."}`, 422, ""))
}

func TestAgents(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	c.With("Content-Type", "application/yaml").Must("POST", "/apply", []byte("kind: Ghost\nmetadata: {name: plan}\nspec: {systemPrompt: Plan.}\n"))
	name := func(n int) string { return strings.Repeat("x", n) }
	c.Check(
		request("POST", "/sessions", `{"agent": ""}`, 201, `!"agent":"`),
		request("POST", "/sessions", `{"agent": "Ghost/plan"}`, 201, `"agent":"Ghost/default/plan"`),
		request("POST", "/sessions", `{"agent": "Ghost/default/plan"}`, 201, `"agent":"Ghost/default/plan"`),
		request("POST", "/sessions", `{"agent": {"kind": "Ghost", "name": "plan"}}`, 201, `"agent":"Ghost/default/plan"`),
		request("POST", "/sessions", `{"agent": {"kind": "Ghost", "namespace": "default", "name": "plan"}}`, 201, `"agent":"Ghost/default/plan"`),
		request("POST", "/sessions", `{"agent": "Ghost/none"}`, 422, `no_agent & Ghost \"none\" not found & GET /api/v1/kinds/Ghost`),
		request("POST", "/sessions", `{"agent": "Ghost/`+name(200)+`"}`, 422, "no_agent"),
		request("POST", "/sessions", `{"agent": "Ghost/`+name(201)+`"}`, 422, "not an agent"),
		request("POST", "/sessions", `{"agent": {"kind": "Ghost", "namespace": "`+name(201)+`", "name": "plan"}}`, 422, "not an agent"),
	)
	for _, agent := range []string{`"plan"`, `"Ghost/"`, `"Ghost//plan"`, `"Ghost/a/b/c"`, `"Skill/plan"`, `7`, `{"kind": "Ghost"}`, `{"kind": "Ghost", "name": "plan", "more": 1}`, `{"name": "plan"}`} {
		c.Check(request("POST", "/sessions", `{"agent": `+agent+`}`, 422, "not an agent"))
	}
}

func TestDraftsAndVersions(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	c.With("Content-Type", "application/yaml").Must("POST", "/apply", []byte("kind: Skill\nmetadata: {name: prose}\nspec: {description: Writes., prompt: \"Write.\\n\"}\n"))
	_, rest, _ := strings.Cut(c.Must("GET", "/skills", nil).Body, `"id":"`)
	skill, _, _ := strings.Cut(rest, `"`)
	draft := `{"files": [{"path": "SKILL.md", "text": "---\nname: prose\ndescription: Writes well.\n---\nWrite well.\n"}]}`
	version := `{"skill": "` + skill + `", "number": 1}`
	c.Check(
		request("POST", "/sessions", `{"version": `+version+`}`, 201, "prose"),
		request("POST", "/sessions", `{"version": {"skill": "`+skill+`", "number": 2}}`, 404, ""),
		request("POST", "/sessions", `{"version": {"skill": "`+skill+`", "number": 0}}`, 422, ""),
		request("POST", "/sessions", `{"draft": `+draft+`}`, 201, "prose"),
		request("POST", "/sessions", `{"draft": {"files": []}}`, 400, "contains no SKILL.md"),
		request("POST", "/sessions", `{"draft": `+draft+`, "version": `+version+`}`, 422, "both a draft and a version"),
	)
}

func TestSkillsOfASession(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	c.With("Content-Type", "application/yaml").Must("POST", "/apply", []byte("kind: Skill\nmetadata: {name: prose}\nspec: {description: Writes., prompt: \"Write.\\n\"}\n---\n"+
		"kind: Skill\nmetadata: {name: poems}\nspec: {description: Rhymes., prompt: \"Rhyme.\\n\", dependencies: [prose]}\n"))
	at := "/sessions/" + c.Must("POST", "/sessions", `{}`).Text("id")
	c.Check(
		request("GET", at+"/skills", nil, 200, `"items":[]`),
		request("POST", at+"/skills", `{"name": "none"}`, 200, `"state":"failed" & skill \"none\" not found`),
		request("POST", at+"/skills", `{"name": ""}`, 422, ""),
		request("POST", at+"/skills", `{"name": "poems"}`, 200, `poems`),
		request("GET", at+"/skills", nil, 200, `"name":"poems" & "name":"prose" & "namespace":"user:`),
		request("POST", at+"/skills", `{"name": "poems", "keep": "pinned"}`, 200, ""),
		request("GET", at+"/skills", nil, 200, `pinned`),
		request("POST", at+"/skills", `{"name": "poems", "keep": "ever"}`, 422, ""),
		request("DELETE", at+"/skills/none", nil, 409, "skill is not loaded"),
		request("DELETE", at+"/skills/poems", nil, 200, `"unloaded":["poems"`),
	)
	c.CheckFailures(at + "/skills")
	c.Check(request("GET", "/sessions/none/skills", nil, 404, ""), request("POST", "/sessions/none/skills", `{"name": "poems"}`, 404, ""), request("DELETE", "/sessions/none/skills/poems", nil, 404, ""))
}

func TestFiles(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	began := c.Must("POST", "/sessions", `{"title": "Tide: \"tables\"?", "message": "Hello."}`)
	at := "/sessions/" + began.Text("id")
	readEvents(t, c, began.Text("id"), "event: ended")
	c.Check(
		request("GET", at+"/files", nil, 200, `"items":[]`),
		request("PUT", at+"/files/notes/a.md", []byte("# A\n"), 204, ""),
		request("PUT", at+"/files/empty", nil, 204, ""),
		request("PUT", at+"/files/../a", []byte("x"), 307, ""),
		request("GET", at+"/files", nil, 200, `"path":"empty" & "path":"notes/a.md"`),
		request("GET", at+"/files/none", nil, 404, ""),
		request("DELETE", at+"/files/none", nil, 404, ""),
		request("GET", "/sessions/none/files", nil, 404, ""),
		request("GET", "/sessions/none/files/a", nil, 404, ""),
	)
	read := c.Must("GET", at+"/files/notes/a.md", nil)
	if read.Body != "# A\n" || read.Header.Get("Content-Type") != "application/octet-stream" || read.Header.Get("Content-Disposition") != "attachment; filename=a.md" || len(read.Header.Get("ETag")) != 66 {
		t.Errorf("read %+v", read)
	}
	if r := c.With("If-None-Match", read.Header.Get("ETag")).Send(t.Context(), "GET", at+"/files/notes/a.md", nil); r.Status != 304 || r.Body != "" {
		t.Errorf("unchanged: %+v", r)
	}
	c.Check(request("DELETE", at+"/files/notes/a.md", nil, 204, ""), request("GET", at+"/files", nil, 200, `!notes`))

	for format, want := range map[string][3]string{"": {"text/markdown; charset=utf-8", ".md", "# "}, "?format=markdown": {"text/markdown; charset=utf-8", ".md", "# "}, "?format=jsonl": {"application/jsonl", ".jsonl", "{"}} {
		r := c.Must("GET", at+"/export"+format, nil)
		name := `attachment; filename="Tide- -tables--` + want[1] + `"`
		if r.Header.Get("Content-Type") != want[0] || r.Header.Get("Content-Disposition") != name || !strings.HasPrefix(r.Body, want[2]) {
			t.Errorf("%s: %s, %s, %.50q", format, r.Header.Get("Content-Type"), r.Header.Get("Content-Disposition"), r.Body)
		}
		if r := c.Send(t.Context(), "HEAD", at+"/export"+format, nil); r.Status != 200 || r.Body != "" || r.Header.Get("Content-Disposition") != name {
			t.Errorf("HEAD %s: %+v", format, r)
		}
	}
	c.Check(request("GET", at+"/export?format=html", nil, 422, ""), request("GET", "/sessions/none/export", nil, 404, ""))
	c.Must("PATCH", at, `{"title": ". ."}`)
	if r := c.Must("GET", at+"/export", nil); !strings.Contains(r.Header.Get("Content-Disposition"), `"conversation `+began.Text("id")+`.md"`) {
		t.Errorf("without a title: %s", r.Header.Get("Content-Disposition"))
	}
}

func TestAsks(t *testing.T) {
	c := hubtest.Open(t, hub.Options{}).Client()
	c.Check(
		request("GET", "/asks", nil, 200, `"items":[]`),
		request("POST", "/asks/none", `{"outcome": "accepted"}`, 404, ""),
		request("POST", "/asks/none", `{"outcome": "perhaps"}`, 422, ""),
		request("POST", "/skill-responses", `{"request_id": "none", "success": true}`, 404, ""),
	)
}

func TestUsage(t *testing.T) {
	price := func(name string) (usage.Price, bool) { return usage.Price{Input: 1e6, Output: 1e6}, true }
	h := hubtest.Open(t, hub.Options{Accounts: true, Price: price, Window: func(string) int { return 1000 }})
	root := h.SignIn("root")
	ada, user := root.NewUser("ada")
	id := user.Must("POST", "/sessions", `{"message": "Hello."}`).Text("id")
	readEvents(t, user, id, "event: ended")
	user.Check(
		request("GET", "/sessions/"+id+"/usage", nil, 200, `"models":{ & "costs":{`),
		request("GET", "/sessions/none/usage", nil, 404, ""),
		request("GET", "/usage/totals", nil, 200, `"by":"day" & "turns":1 & "day":"20 & "items":[{`),
		request("GET", "/usage/totals?by=user", nil, 200, `"user":"`+ada+`" & "user_name":"ada" & !"day":`),
		request("GET", "/usage/totals?by=model&user=me", nil, 200, `"by":"model" & "turns":1`),
		request("GET", "/usage/totals?by=agent&namespace=default", nil, 200, `"turns":0 & "items":[]`),
		request("GET", "/usage/totals?namespace=nowhere", nil, 404, ""),
		request("GET", "/usage/totals?by=week", nil, 422, ""),
	)
	root.Check(request("GET", "/usage/totals?user="+ada, nil, 200, `"turns":1`), request("GET", "/usage/totals?user=me", nil, 200, `"turns":0`))
	user.CheckFailures("/usage/totals", "/usage/totals?by=user", "/sessions/"+id+"/usage")
}

func TestSocketNeedsAnUpgrade(t *testing.T) {
	h := hubtest.Open(t, hub.Options{Accounts: true})
	h.SignIn("root").Check(request("GET", "//ws", nil, 426, "a WebSocket is required"))
	h.Client().Check(request("GET", "//ws", nil, 401, ""))
}
