package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// folderTools read, write and remove files of a conversation.
func folderTools(talk *chat.ToolContext) []agent.Tool {
	type file struct{ Path, Text string }
	do := func(name string, f func(*os.Root, file) (string, error)) agent.Tool {
		return tool(name, func(ctx context.Context, args json.RawMessage) (*agent.Outcome, error) {
			root, err := talk.OpenFolder(ctx)
			if err != nil {
				return nil, err
			}
			var in file
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, err
			}
			text, err := f(root, in)
			if err != nil {
				return &agent.Outcome{Text: err.Error(), Error: true}, nil
			}
			return &agent.Outcome{Text: text}, nil
		})
	}
	return []agent.Tool{
		do("read", func(root *os.Root, f file) (string, error) { b, err := root.ReadFile(f.Path); return string(b), err }),
		do("write", func(root *os.Root, f file) (string, error) {
			return "written", root.WriteFile(f.Path, []byte(f.Text), 0o600)
		}),
		do("remove", func(root *os.Root, f file) (string, error) { return "removed", root.Remove(f.Path) }),
		do("link", func(root *os.Root, f file) (string, error) { return "linked", root.Symlink(f.Text, f.Path) }),
		do("fill", func(root *os.Root, f file) (string, error) {
			return "filled", root.WriteFile(f.Path, make([]byte, chat.MaxFile+1), 0o600)
		}),
	}
}

// The files of a conversation go with it to whatever node has its turn, as persons and
// tools left them.
func TestFilesAreDeletedWithConversation(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		dir := t.TempDir()
		k := setupFixture{tools: folderTools}
		nodes := []*chat.Engine{node(t, open(), k, func(o *chat.Options) { o.Dir = dir }), node(t, open(), k, func(o *chat.Options) { o.Dir = dir })}
		a, b := nodes[0], nodes[1]
		id := begin(t, a)
		turn := func(e *chat.Engine, text, want string) {
			t.Helper()
			end(t, e, id, say(t, e, id, text))
			if got := transcript(t, e, id); !strings.HasSuffix(got, "assistant: result: "+want) {
				t.Errorf("after %q the transcript is\n%s", text, got)
			}
		}
		if err := a.WriteFile(t.Context(), ada, id, "in/data.csv", []byte("1,2")); err != nil {
			t.Fatal(err)
		}
		turn(b, `call read {"path": "in/data.csv"}`, "1,2")
		turn(b, `call write {"path": "in/data.csv", "text": "3,4"}`, "written")
		turn(a, `call read {"path": "in/data.csv"}`, "3,4")
		turn(a, `call write {"path": "out.txt", "text": "\u0000x"}`, "written")
		turn(b, `call remove {"path": "in/data.csv"}`, "removed")
		turn(b, `call link {"path": "secret", "text": "/etc/passwd"}`, "linked")
		files, err := a.Files(t.Context(), ada, id)
		if err != nil || len(files) != 1 || files[0].Path != "out.txt" || files[0].Size != 2 {
			t.Errorf("the files are %+v, %v", files, err)
		}
		if data, err := a.ReadFile(t.Context(), ada, id, "out.txt"); err != nil || string(data) != "\x00x" {
			t.Errorf("it holds %q, %v", data, err)
		}
		if err := a.DeleteFile(t.Context(), ada, id, "out.txt"); err != nil {
			t.Fatal(err)
		}
		turn(b, `call read {"path": "out.txt"}`, "openat out.txt: no such file or directory")
		closeNode(t, a)
		closeNode(t, b)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("folders are left: %v, %v", left, err)
		}
	})
}

// An oversized file is reported, and the turn continues.
func TestOversizedToolFile(t *testing.T) {
	testUnsavedToolFile(t, `call fill {"path": "big"}`)
}

// A call may remove a file that the hub refused to store, or that the user deleted
// during the turn.
func TestToolRemovesFileThatIsNotStored(t *testing.T) {
	var e *chat.Engine
	var id string
	forget := tool("forget", func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
		return &agent.Outcome{Text: "deleted"}, e.DeleteFile(ctx, ada, id, "a")
	})
	e = node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(callEach), tools: func(talk *chat.ToolContext) []agent.Tool {
		return append(folderTools(talk), forget)
	}})
	id = begin(t, e)
	for i, script := range []string{
		"fill {\"path\": \"big\"}\nremove {\"path\": \"big\"}",
		"write {\"path\": \"a\"}\nforget {}\nremove {\"path\": \"a\"}",
	} {
		n := say(t, e, id, fmt.Sprintf("%s\nwrite {\"path\": \"b\", \"text\": \"%d\"}", script, i))
		got := until(t, e, id, 0, func(ev chat.Event) bool {
			return ev.Input == n && (ev.Type == chat.TurnEnded || ev.Type == chat.TurnResumed)
		})
		if ev := lastOf(got); ev.Reason != chat.Done {
			t.Fatalf("%s: turn ended as %+v", script, ev)
		}
		if data, err := e.ReadFile(t.Context(), ada, id, "b"); err != nil || string(data) != fmt.Sprint(i) {
			t.Errorf("%s: a file written later has %q, %v", script, data, err)
		}
	}
}

// callEach is a model that makes the calls in the lines of a message, one at a time.
func callEach(_ context.Context, r *llm.Request) (*llm.Answer, error) {
	made := 0
	for _, m := range slices.Backward(r.Messages) {
		for _, p := range m.Parts {
			if _, ok := p.(llm.Result); ok {
				made++
			}
		}
		if m.Role != llm.User || m.Text() == "" {
			continue
		}
		if lines := strings.Split(m.Text(), "\n"); made < len(lines) {
			name, args, _ := strings.Cut(lines[made], " ")
			return calls(name, json.RawMessage(args)), nil
		}
		break
	}
	return says("done"), nil
}

// A file that exceeds the quota of the owner is reported, and the turn continues.
func TestToolFileAboveQuota(t *testing.T) {
	text := strings.Repeat("0123456789", 100) // the message fits, which is stored twice
	testUnsavedToolFile(t, `call write {"path": "big", "text": "`+text+`"}`, func(o *chat.Options) {
		o.Quotas.Default.User.Bytes = 2500
	})
}

func testUnsavedToolFile(t *testing.T, message string, change ...func(*chat.Options)) {
	t.Helper()
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: folderTools}, change...)
	id := begin(t, e)
	n := say(t, e, id, message)
	got := until(t, e, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == n })
	notice := ""
	for _, ev := range got {
		if ev.Type == chat.Notice {
			notice = ev.Text
		}
	}
	if lastOf(got).Reason != chat.Done || !strings.Contains(notice, `file "big"`) {
		t.Errorf("the notice is %q: %s", notice, isReported(got))
	}
	if files, err := e.Files(t.Context(), ada, id); err != nil || len(files) > 0 {
		t.Errorf("the files are %v, %v", files, err)
	}
}

func TestFileLimits(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	write := func(path string, data []byte) error { return e.WriteFile(t.Context(), ada, id, path, data) }
	if err := write("dir/file", nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", "..", "../x", "/x", "a//b", "a/../b", `a\b`, "C:x", "a\x00", "a\nb", "a\u202eb", "\xff", strings.Repeat("x", 600), "dir", "dir/file/x"} {
		if err := write(path, nil); !errors.Is(err, chat.ErrInvalid) {
			t.Errorf("path %q: %v", path, err)
		}
	}
	large := bytes.Repeat([]byte{1}, chat.MaxFile)
	if err := write("large", append(large, 1)); !errors.Is(err, chat.ErrInvalid) {
		t.Errorf("a file that is too large: %v", err)
	}
	for i := range chat.MaxFileBytes / chat.MaxFile {
		if err := write(fmt.Sprint("large", i), large); err != nil {
			t.Fatal(err)
		}
	}
	if err := write("one more", []byte("x")); !errors.Is(err, chat.ErrInvalid) {
		t.Errorf("more than all may have: %v", err)
	}
	if err := write("large0", large); err != nil {
		t.Errorf("in place of one: %v", err)
	}
	if err := write("large0", nil); err != nil {
		t.Fatal(err)
	}
	for i := range chat.MaxFiles - 1 - chat.MaxFileBytes/chat.MaxFile {
		if err := write(fmt.Sprint("small", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := write("one more", nil); !errors.Is(err, chat.ErrInvalid) {
		t.Errorf("more than there may be: %v", err)
	}
}

// The directory of a conversation is created at its first use in a turn, with the
// files of the conversation.
func TestFolderIsCreatedWhenUsed(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: func(talk *chat.ToolContext) []agent.Tool {
		return append(folderTools(talk), tool("use", func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
			if _, err := os.Stat(talk.FolderPath); !errors.Is(err, fs.ErrNotExist) {
				return &agent.Outcome{Text: "it exists before its first use"}, nil
			}
			root, err := talk.OpenFolder(ctx)
			if err != nil {
				return nil, err
			}
			data, err := os.ReadFile(filepath.Join(talk.FolderPath, "note"))
			if again, _ := talk.OpenFolder(ctx); again != root {
				err = errors.New("the second use opens another directory")
			}
			return &agent.Outcome{Text: string(data)}, err
		}))
	}})
	id := begin(t, e)
	if err := e.WriteFile(t.Context(), ada, id, "note", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		end(t, e, id, say(t, e, id, "call use"))
		if got := transcript(t, e, id); !strings.HasSuffix(got, "assistant: result: mine") {
			t.Error(got)
		}
	}
}

// A call that outlives its turn cannot create the directory again, which nobody
// would remove.
func TestFolderEndsWithTheTurn(t *testing.T) {
	opened := make(chan *chat.ToolContext, 1)
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: func(talk *chat.ToolContext) []agent.Tool {
		opened <- talk
		return folderTools(talk)
	}})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "hello"))
	closeNode(t, e) // waits until the turn is closed, which happens after its last event
	talk := <-opened
	if root, err := talk.OpenFolder(t.Context()); err == nil {
		root.Close()
		t.Error("the directory of an ended turn is created")
	}
	if _, err := os.Stat(talk.FolderPath); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of an ended turn: %v", err)
	}
}
