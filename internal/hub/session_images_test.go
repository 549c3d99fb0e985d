package hub_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// The history and the events of a conversation name the images of its messages, and
// the hub serves an image only as an image.
func TestSessionImages(t *testing.T) {
	_, ada, bob := hall(t, func(_ *chat.Options, s *chat.Setup) { s.ReadsImages = true })
	session := ada.begin(t)
	write := func(name, content string) {
		t.Helper()
		ada.send(t, "PUT", session+"/files/"+name, typed{"application/octet-stream", content}).want(t, 204)
	}
	write("dot.gif", string(dot))
	write("page.gif", "<script>alert(1)</script>")
	say := func(c caller, images ...map[string]string) reply {
		t.Helper()
		return c.send(t, "POST", session+"/messages", map[string]any{"text": "hello", "images": images})
	}
	var out struct{ Input int64 }
	say(ada, map[string]string{"path": "dot.gif"}).want(t, 202).into(t, &out)
	ada.ended(t, session, out.Input)
	want := fmt.Sprintf(`"images":[{"mime_type":"image/gif","name":"dot.gif","ref":"%s"}]`, hashOf(dot))
	if r := ada.send(t, "GET", session+"/messages", nil).want(t, 200); !strings.Contains(r.body, want) {
		t.Errorf("the history is %s, want %s", r.body, want)
	}
	if r := ada.send(t, "GET", session+"/events?follow=false", nil).want(t, 200); strings.Count(r.body, want) != 2 || strings.Contains(r.body, `"data":"R0lGOD`) {
		t.Errorf("the events are %s", r.body)
	}
	r := ada.send(t, "GET", session+"/images/"+hashOf(dot), nil).want(t, 200)
	if r.body != string(dot) {
		t.Errorf("the image is %q", r.body)
	}
	for name, want := range map[string]string{"Content-Type": "image/gif", "X-Content-Type-Options": "nosniff", "Content-Disposition": "inline", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	ada.send(t, http.MethodGet, session+"/images/"+hashOf([]byte("<script>alert(1)</script>")), nil).wantProblem(t, 404, "not_found")
	bob.send(t, http.MethodGet, session+"/images/"+hashOf(dot), nil).wantProblem(t, 404, "not_found")
	// A client that has the image gets it only once. The content is not even read.
	for _, tag := range []string{`"` + hashOf(dot) + `"`, `"x", W/"` + hashOf(dot) + `"`} {
		if r := ada.with("If-None-Match", tag).send(t, "GET", session+"/images/"+hashOf(dot), nil).want(t, 304); r.body != "" || r.header.Get("ETag") != `"`+hashOf(dot)+`"` {
			t.Errorf("%s: %v, %q", tag, r.header, r.body)
		}
	}
	ada.with("If-None-Match", `"x"`).send(t, "GET", session+"/images/"+hashOf(dot), nil).want(t, 200)
	page := hashOf([]byte("<script>alert(1)</script>"))
	ada.with("If-None-Match", `"`+page+`"`).send(t, "GET", session+"/images/"+page, nil).want(t, 304)
	none := strings.Repeat("0", 64)
	ada.with("If-None-Match", `"`+none+`"`).send(t, "GET", session+"/images/"+none, nil).wantProblem(t, 404, "not_found")
	bob.with("If-None-Match", `"`+hashOf(dot)+`"`).send(t, "GET", session+"/images/"+hashOf(dot), nil).wantProblem(t, 404, "not_found")
	say(ada, map[string]string{"path": "page.gif"}).wantProblem(t, 422, "image_type")
	say(ada, map[string]string{"path": "none.gif"}).wantProblem(t, 422, "image_gone")
	say(ada, map[string]string{"path": "dot.gif", "sha256": strings.Repeat("0", 63)}).wantProblem(t, 422, "invalid")
	say(ada, map[string]string{"path": "dot.gif", "sha256": strings.Repeat("0", 64)}).want(t, 202) // as if it was deleted
	say(bob, map[string]string{"path": "dot.gif"}).wantProblem(t, 404, "not_found")
}
