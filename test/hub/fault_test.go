//go:build unix

package hub_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/bus/bustest"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/skill"
)

// Redis stops during a turn and returns. Events of one node still reach the other.
func TestRedisOutage(t *testing.T) {
	redis := bustest.Start(t)
	h, m, l := newHub(t, storetest.Postgres(t), redis.URL()), newModel(t, time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := one.begin()
	w := two.watch(session, "")
	one.say(session, calls("hold", "long"), calls("burn", "behind"))
	<-l.begun
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{one, two} {
		n.eventually("it reports that Redis is disconnected", func() bool { ok, status := n.ready(); return ok && strings.Contains(status, "bus: disconnected") })
	}
	l.letGo()
	asked := two.until(w, isType(chat.ApprovalRequested)).ApprovalRequest
	two.send("POST", "/api/v1/asks/"+asked.ID, map[string]string{"outcome": "accepted"}).want(t, 204)
	if end := two.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("it ended as %+v", end)
	}
	if err := inOrder(w.seen); err != nil {
		t.Error(err)
	}
	if got := results(w.seen); !strings.Contains(got["behind"], "kept behind") {
		t.Errorf("what came of it: %v", got)
	}
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{one, two} {
		n.eventually("Redis is there again", func() bool { ok, status := n.ready(); return ok && strings.Contains(status, "bus: ok") })
	}
}

// The database stops during a turn and returns. Meanwhile nodes report it; then they
// resume by themselves, and nothing is lost or done twice.
func TestDatabaseReconnects(t *testing.T) {
	storetest.Postgres(t) // or skips
	server := must(storetest.StartServer())(t)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	h, m, l := newHub(t, server.URL(), bustest.Start(t).URL()), newModel(t, time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := one.begin()
	w := two.watch(session, "")
	one.say(session, calls("write", "before"), calls("hold", "long"), calls("write", "behind"))
	<-l.begun
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{one, two} {
		n.eventually("it is not ready", func() bool {
			ok, status := n.ready()
			return !ok && strings.HasPrefix(status, "503 ") && strings.Contains(status, "database")
		})
		r := n.send("POST", session+"/messages", map[string]string{"text": "hello"})
		if r.status != 503 || r.header.Get("Retry-After") == "" || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("without a database: %d %v %s", r.status, r.header, r.body)
		}
		if r := must(n.ask("", "GET", "/healthz", nil))(t); r.status != 200 {
			t.Errorf("the process is not well: %d", r.status)
		}
	}
	l.letGo()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{one, two} {
		n.eventually("it is ready again", func() bool { ok, _ := n.ready(); return ok })
	}
	var all []chat.Event
	for ended := false; !ended; {
		end, err := w.until(isType(chat.TurnEnded))
		all, ended = append(all, w.seen...), err == nil
		switch {
		case ended && end.Reason != chat.Done:
			t.Errorf("it ended as %+v", end)
		case ended:
		case !strings.Contains(err.Error(), `"unavailable"`):
			t.Fatalf("the stream ended with %v", err)
		default:
			w = two.watch(session, w.last)
		}
	}
	if err := inOrder(all); err != nil {
		t.Error(err)
	}
	if n := sayings(all, "before"); n != 1 {
		t.Errorf("the message is there %d times", n)
	}
	got := results(all)
	for _, what := range []string{"before", "long", "behind"} {
		if n := l.all()[what]; n != 1 || !strings.Contains(got[what], "kept "+what) && (what != "long" || !strings.Contains(got[what], unknown)) {
			t.Errorf("%s was done %d times: %s", what, n, got[what])
		}
	}
}

// pack returns an uploadable skill with more files by path.
func pack(t testing.TB, name, body string, more ...string) typed {
	t.Helper()
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: Does what " + name + " does.\n---\n" + body + "\n")}}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	var out bytes.Buffer
	if _, _, err := skill.WriteZIP(&out, files, name); err != nil {
		t.Fatal(err)
	}
	return typed{"application/zip", out.Bytes()}
}

// Of many uploads of one name, to two nodes at once, one is kept, whole.
func TestConcurrentUploadsToTwoNodes(t *testing.T) {
	h := onPostgres(t)
	nodes := []*node{h.start(), h.start()}
	const tries = 12
	replies, errs := make([]reply, tries), make([]error, tries)
	var sending sync.WaitGroup
	for i := range tries {
		body := pack(t, "pdf", fmt.Sprint("number ", i))
		sending.Go(func() {
			replies[i], errs[i] = nodes[i%2].ask(h.token, "POST", "/api/v1/skills?file_name=pdf.zip", body)
		})
	}
	sending.Wait()
	var made []int
	for i, r := range replies {
		switch must(r, errs[i])(t).status {
		case 201:
			made = append(made, i)
		case 409:
		default:
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
	if len(made) != 1 {
		t.Fatalf("%v were stored", made)
	}
	var one struct {
		ID     string
		Number int64
	}
	replies[made[0]].into(t, &one)
	for _, n := range nodes {
		r := n.send("GET", "/api/v1/skills/"+one.ID+"/versions/"+fmt.Sprint(max(one.Number, 1))+"/files/SKILL.md", nil).want(t, 200)
		if !strings.Contains(r.body, fmt.Sprintf("number %d\n", made[0])) {
			t.Errorf("it has %q, and %d was stored", r.body, made[0])
		}
		var page struct{ Items []struct{ Name string } }
		n.send("GET", "/api/v1/skills?namespace=default", nil).want(t, 200).into(t, &page)
		if i := slices.IndexFunc(page.Items, func(s struct{ Name string }) bool { return s.Name == "pdf" }); i < 0 || len(page.Items) != 1 {
			t.Errorf("the skills are %v", page.Items)
		}
	}
}
