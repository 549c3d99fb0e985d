package hub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// The list has the events of the stream, each once and in order, in pages.
func TestSessionEventList(t *testing.T) {
	_, ada, _ := hall(t)
	session := ada.begin(t)
	for range 5 {
		ada.talk(t, session, strings.Repeat("tide ", 50_000)) // the message and its echo: 1 MB
	}
	var listed, streamed []string
	pages := 0
	for after := "0"; after != ""; pages++ {
		var page struct {
			Items []chat.Event
			Next  string
		}
		ada.send(t, "GET", session+"/history?after="+after, nil).want(t, 200).into(t, &page)
		for _, e := range page.Items {
			listed = append(listed, string(e.Type))
		}
		after = page.Next
	}
	stream := ada.send(t, "GET", session+"/events?follow=false", nil).want(t, 200).body
	for line := range strings.Lines(stream) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			streamed = append(streamed, strings.TrimSpace(name))
		}
	}
	if pages < 2 || !slices.Equal(listed, streamed) {
		t.Errorf("%d pages list the events %q, want several with %q", pages, listed, streamed)
	}
	ada.send(t, "GET", session+"/history?after=x", nil).wantProblem(t, 422, "invalid")
}
