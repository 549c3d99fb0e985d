//go:build unix

package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// watched is a stream of events of a conversation on some node.
type watched struct {
	lines *bufio.Reader
	close func()
	seen  []chat.Event
	last  string // the id of the last event
}

// watch opens the stream of a conversation after an event, "" for all of it.
func (n *node) watch(session, after string) *watched {
	n.t.Helper()
	return must(n.opens(session, after))(n.t)
}

func (n *node) opens(session, after string) (*watched, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	req, err := http.NewRequestWithContext(ctx, "GET", n.url+session+"/events", nil)
	if err != nil {
		stop()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := n.client.Do(req)
	if err != nil {
		stop()
		return nil, err
	}
	end := sync.OnceFunc(func() {
		stop()
		res.Body.Close()
	})
	n.t.Cleanup(end)
	if res.StatusCode != 200 {
		data, _ := io.ReadAll(res.Body)
		end()
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, data)
	}
	return &watched{lines: bufio.NewReader(res.Body), close: end, last: after}, nil
}

// errBye reports a stream that its node closed with a closing event.
var errBye = fmt.Errorf("the node said good-bye")

// next returns the next event, or io.EOF or another error at the end.
func (w *watched) next() (ev chat.Event, err error) {
	id, name, data := "", "", ""
	for {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			return ev, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, ":"):
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data = value
		case line != "" || name == "":
		case name == "bye":
			return ev, errBye
		case name == "problem":
			return ev, fmt.Errorf("the stream says %s", data)
		default:
			err := json.Unmarshal([]byte(data), &ev)
			if err == nil && (string(ev.Type) != name || strconv.FormatInt(ev.Seq, 10) != id) {
				err = fmt.Errorf("event %s has the number %s: %s", name, id, data)
			}
			w.last, w.seen = id, append(w.seen, ev)
			return ev, err
		}
	}
}

// until reads events up to a matching one and returns it.
func (w *watched) until(is func(chat.Event) bool) (chat.Event, error) {
	for {
		ev, err := w.next()
		if err != nil {
			return ev, fmt.Errorf("after %d events: %w", len(w.seen), err)
		}
		if is(ev) {
			return ev, nil
		}
	}
}

// until is for a stream that must continue.
func (n *node) until(w *watched, is func(chat.Event) bool) chat.Event {
	n.t.Helper()
	ev, err := w.until(is)
	if err != nil {
		n.t.Fatalf("%v\n%s", err, n.log)
	}
	return ev
}

func isType(types ...chat.Type) func(chat.Event) bool {
	return func(ev chat.Event) bool {
		for _, t := range types {
			if ev.Type == t {
				return true
			}
		}
		return false
	}
}

// told returns all events so far.
func (n *node) told(session string) ([]chat.Event, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "GET", n.url+session+"/events?follow=false", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	res, err := n.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	w := &watched{lines: bufio.NewReader(res.Body)}
	for {
		if _, err := w.next(); err == io.EOF {
			return w.seen, nil
		} else if err != nil {
			return nil, err
		}
	}
}
