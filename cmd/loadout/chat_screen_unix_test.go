//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
)

// conversationID waits until a conversation is open and returns its ID.
func (p *pane) conversationID() string {
	p.Helper()
	p.shows("Message…")
	all := regexp.MustCompile(`conversation (\d\S+)`).FindAllStringSubmatch(p.tmux("capture-pane", "-p", "-S", "-", "-J"), -1)
	if all == nil {
		p.Fatalf("no conversation is named:\n%s", p.screen())
	}
	return all[len(all)-1][1]
}

// /new and /clear start another conversation and say how to return. The line at
// exit resumes the conversation, and is missing if nothing was said.
func TestNewConversationScreen(t *testing.T) {
	p := openPane(t, 80, harbourHome(t), nil, "--skills", "skills", "--model", "demo")
	first := p.conversationID()
	p.types("hello there", "Enter")
	p.shows("OPENAI_API_KEY.")
	p.types("/new", "Enter")
	p.shows("The last conversation is saved; return: /resume")
	if second := p.conversationID(); second == first {
		t.Errorf("/new continued conversation %s", first)
	}
	p.types("/clear", "Enter")
	p.waitFor("Message…", func(screen string) bool { return !strings.Contains(screen[strings.LastIndex(screen, "conversation "):], "/clear") })
	visible := p.tmux("capture-pane", "-p", "-J")
	if strings.Contains(visible, "hello there") || strings.Contains(visible, "return:") || !strings.HasPrefix(visible, "demo:rules, conversation") {
		t.Errorf("after /clear the screen is\n%s", visible)
	}
	p.types("/resume "+first, "Enter")
	p.shows("> hello there")
	p.types("", "C-d")
	if end := p.ends("left with 0"); !strings.Contains(end, "\nResume this conversation with: loadout chat --session YYYYMMDD-HHMMSS-xxxxx --model demo --skills skills\n") {
		t.Errorf("it ends with\n%s", end)
	}
	p = openPane(t, 80, harbourHome(t), nil, "--skills", "skills", "--model", "demo")
	p.shows("Message…")
	p.types("", "C-d")
	if end := p.ends("left with 0"); strings.Contains(end, "Resume this") {
		t.Errorf("an empty conversation ends with\n%s", end)
	}
}

// A question mark on an empty line lists the keys until the next key.
func TestKeysScreen(t *testing.T) {
	p := openPane(t, 40, harbourHome(t), nil, "--skills", "skills", "--model", "demo")
	p.shows("Message…")
	p.types("?")
	p.golden("keys-40", "Ctrl-O")
	p.types("why?")
	p.waitFor("> why?", func(screen string) bool { return !strings.Contains(screen, "Ctrl-O") })
}
