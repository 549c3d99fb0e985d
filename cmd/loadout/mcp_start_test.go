package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/skill"
)

// blockedSource is a directory tree that is never read to its end, until release
// is closed.
type blockedSource struct {
	scope   catalog.Scope
	once    sync.Once
	listed  chan struct{} // closed at the first listing
	release chan struct{}
}

func (s *blockedSource) Origin() string       { return fmt.Sprintf("blocked.%d", s.scope) }
func (s *blockedSource) Scope() catalog.Scope { return s.scope }

func (s *blockedSource) List(context.Context) (catalog.Listing, error) {
	s.once.Do(func() { close(s.listed) })
	<-s.release
	return catalog.Listing{}, nil
}

func (s *blockedSource) Open(context.Context, *catalog.Entry) (*skill.Bundle, error) {
	<-s.release
	return nil, io.EOF
}

// A server that waits for a tree never answers here.
func TestMCPStartWaitsForNoTree(t *testing.T) {
	release := make(chan struct{})
	var sources []catalog.Source
	var blocked []*blockedSource
	for _, scope := range []catalog.Scope{catalog.Project, catalog.User, catalog.Group} {
		s := &blockedSource{scope: scope, listed: make(chan struct{}), release: release}
		blocked, sources = append(blocked, s), append(sources, s)
	}
	home := t.TempDir()
	t.Chdir(home)
	in, client := io.Pipe()
	server, out := io.Pipe()
	var problems strings.Builder
	ended := make(chan int, 1)
	go func() {
		code := run(t.Context(), []string{"mcp"}, environment{stdin: in, stdout: out, stderr: &problems, caller: testCaller, operator: testOperator(), moreSources: sources,
			getenv: func(name string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[name] }})
		out.Close()
		ended <- code
	}()
	late := time.AfterFunc(time.Minute, func() {
		err := errors.New("no answer while a tree is read")
		server.CloseWithError(err)
		in.CloseWithError(err)
	})
	defer late.Stop()
	answers := bufio.NewScanner(server)
	answers.Buffer(nil, 1<<20)
	for _, call := range []struct{ request, want string }{
		{initialize, `"serverInfo"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"load_skill"`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_skills","arguments":{"query":"csv"}}}`, "csv-analysis"},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"load_skill","arguments":{"name":"csv-analysis"}}}`, "is loaded"},
	} {
		if _, err := io.WriteString(client, call.request+"\n"); err != nil {
			t.Fatal(err)
		}
		if call.want == "" {
			continue
		}
		for {
			if !answers.Scan() {
				t.Fatalf("%.80s: %v", call.request, answers.Err())
			}
			if strings.Contains(answers.Text(), `"id":`) {
				break // not a notification
			}
		}
		if !strings.Contains(answers.Text(), call.want) {
			t.Errorf("%.80s: got %.300s, want %s", call.request, answers.Text(), call.want)
		}
	}
	for _, s := range blocked {
		<-s.listed // the server reads the trees
	}
	close(release)
	client.Close()
	for answers.Scan() {
	}
	if code := <-ended; code != exit.OK {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
}
