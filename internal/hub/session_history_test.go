package hub_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// The list has the events of the stream, each once, in order and with the same data, in
// pages.
func TestSessionEventList(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	for range 5 {
		ada.talk(t, session, strings.Repeat("tide ", 50_000)) // the message and its echo: 1 MB
	}
	var listed, streamed []chat.Event
	pages := 0
	for after := "0"; after != ""; pages++ {
		var page struct {
			Items []chat.Event
			Next  string
		}
		ada.send(t, "GET", session+"/history?after="+after, nil).want(t, 200).into(t, &page)
		listed = append(listed, page.Items...)
		after = page.Next
	}
	stream := ada.send(t, "GET", session+"/events?follow=false", nil).want(t, 200).body
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e chat.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			streamed = append(streamed, e)
		}
	}
	if pages < 2 || len(listed) != len(streamed) {
		t.Fatalf("%d pages list %d events, want several with %d", pages, len(listed), len(streamed))
	}
	for i, e := range listed {
		if !reflect.DeepEqual(e, streamed[i]) {
			t.Errorf("event %d is %d of type %s, want %d of type %s with the same data", i, e.Seq, e.Type, streamed[i].Seq, streamed[i].Type)
		}
	}
	ada.send(t, "GET", session+"/history?after=x", nil).wantProblem(t, 422, "invalid")
}
