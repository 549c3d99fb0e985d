//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// /new and /clear start another conversation and say how to return to the last one
// with messages. The line at exit resumes the conversation, and is missing if
// nothing was said.
func TestNewConversationScreen(t *testing.T) {
	p := openPane(t, 80, harbourHome(t), nil, "--skills", "skills", "--model", "demo")
	first := p.conversationID()
	p.types("hello there", "Enter")
	p.shows("OPENAI_API_KEY.")
	p.types("/new", "Enter")
	p.shows("The previous conversation is saved. To return: /resume")
	if second := p.conversationID(); second == first {
		t.Errorf("/new continued conversation %s", first)
	}
	p.types("/clear", "Enter")
	eventually(t, "the screen is cleared", func() bool {
		visible := p.tmux("capture-pane", "-p", "-J")
		return strings.HasPrefix(visible, "demo:rules, conversation") && !strings.Contains(visible, "hello there") && strings.Contains(visible, "To return: /resume")
	})
	p.types("/resume "+first, "Enter")
	p.waitFor("Message…", func(screen string) bool {
		return strings.Count(screen, "> hello there") == 2 && strings.LastIndex(screen, "Message…") > strings.LastIndex(screen, "> hello there")
	})
	p.types("", "C-d")
	if end := p.ends("left with 0"); !strings.Contains(end, "\nResume this conversation with: loadout chat --session YYYYMMDD-HHMMSS-xxxxx --model demo --skills ") {
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

// The list of models gets those of the server after it is shown. A file name with two
// spaces is complete in the command that resumes the conversation.
func TestOfferedModelsScreen(t *testing.T) {
	home := harbourHome(t)
	folder := filepath.Join(home, "my  work")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = io.WriteString(w, `{"data": [{"id": "small"}, {"id": "large"}]}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		}
	}))
	defer server.Close()
	p := openPane(t, 160, home, nil, "--skills", "skills", "--workspace", folder, "--model", "openai:small", "--base-url", server.URL+"/v1")
	p.conversationID() // the program reads keys only after it has started
	p.types("/model", "Enter")
	t.Log(p.shows("offered by 127.0.0.1"))
	p.types("large", "Enter")
	p.shows("large at 127.0.0.1")
	p.types("hello", "Enter")
	p.shows("Hello.")
	p.types("", "C-d")
	screen := p.ends("left with 0")
	t.Log(screen)
	if !strings.Contains(screen, "--workspace '"+folder+"'") {
		t.Errorf("the folder is not complete on the screen:\n%s", screen)
	}
}

// Conversations, models and earlier inputs are picked from lists. Titles cannot
// control the terminal.
func TestPickerScreen(t *testing.T) {
	home := harbourHome(t)
	sessions := filepath.Join(home, ".local", "state", "loadout", "sessions")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".config", "loadout"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(sessions, "20260101-101010-hostl.jsonl"):    `{"seq":1,"time":"2026-01-01T10:10:10Z","message":{"role":"user","text":"\u001b[2J\u001b]0;owned\u0007 evil \u202e title"}}` + "\n",
		filepath.Join(home, ".config", "loadout", "loadout.yaml"): "models:\n  names:\n    quick: {model: \"openai:small\", base_url: \"http://127.0.0.1:1\"}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openPane(t, 80, home, nil, "--skills", "skills", "--model", "demo")
	first := p.conversationID()
	p.types("hello there", "Enter")
	p.shows("OPENAI_API_KEY.")
	p.types("/model", "Enter")
	p.shows("› demo")
	p.types("", "Down", "Enter")
	p.shows("small at 127.0.0.1:1.")
	p.types("/models", "Enter")
	p.shows("current, ")
	p.types("demo", "Enter")
	p.shows("Model: demo:rules.")
	p.types("/clear", "Enter")
	p.waitFor("To return: /resume", func(string) bool { return true })
	p.types("/sessions", "Enter")
	list := p.shows("type to filter")
	if !strings.Contains(list, "[2J ]0;owned evil title") {
		t.Errorf("the list is\n%s", list)
	}
	p.types("hello", "Enter")
	p.shows("> hello there")
	if again := p.conversationID(); again != first {
		t.Errorf("it continued %s, want %s", again, first)
	}
	p.types("", "C-r")
	p.types("hello")
	p.shows("› hello there")
	p.types("", "Enter")
	p.waitFor("\n> hello there", func(screen string) bool { return !strings.Contains(screen, "›") })
	p.types("", "C-c", "C-d")
	p.ends("left with 0")
}

// A file named with @ is completed, attached and announced. What cannot be
// attached returns to the input. A long pasted text is folded and names no file.
func TestAttachScreen(t *testing.T) {
	home := harbourHome(t)
	for name, text := range map[string]string{"tide-table.txt": "High at 12:10\x1b]0;owned\a\n", "logo.png": "\x89PNG\x00"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openPane(t, 80, home, nil, "--skills", "skills", "--model", "demo")
	p.shows("Message…")
	p.types("what is in @tide")
	p.shows("› tide-table.txt")
	p.types("", "Tab")
	p.waitFor("> what is in @tide-table.txt", func(screen string) bool { return !strings.Contains(screen, "›") })
	p.types("", "Enter")
	p.shows("! attached tide-table.txt (24 bytes, 2 control or hidden characters removed)")
	p.shows("for “what is in @tide-table.txt”")
	p.types("show @logo.png ", "Enter")
	p.shows("attach logo.png: not UTF-8 text")
	p.waitFor("let the agent", func(screen string) bool { return strings.Count(screen, "\n> show @logo.png") == 2 })
	p.types("", "C-c")
	p.tmux("set-buffer", strings.Repeat("read @tide-table.txt\n", 9))
	p.tmux("paste-buffer", "-p")
	p.golden("pasted-80", "> [Pasted text #1, 9 lines]")
	p.types("", "Enter")
	p.shows("I searched the skills for “read @tide-table.txt")
	if screen := p.shows("Message…"); strings.Count(screen, "attached tide-table.txt") != 1 {
		t.Errorf("a pasted path was read:\n%s", screen)
	}
	p.types("", "Up")
	p.shows("> [Pasted text #1, 9 lines]")
	p.types("", "C-c", "C-d")
	p.ends("left with 0")
}
