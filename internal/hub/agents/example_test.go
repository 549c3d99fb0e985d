package agents_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
)

// This example applies a Ghost and prints the parts of a conversation with it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, filepath.Join(dir, "hub.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	me := account.SinglePrincipal()
	if _, err := db.Users.Create(ctx, store.User{ID: string(me.User), Name: me.Name}); err != nil {
		log.Fatal(err)
	}

	hub := agents.New(db, nil)
	result, err := hub.Apply(ctx, me, agents.Parse([]byte(`
apiVersion: loadout/v1
kind: Ghost
metadata: {name: analyst}
spec:
  systemPrompt: You read numbers.
  mcpServers:
    charts: {command: charts-server}
`), "analyst.yaml"), false)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range result.Changes {
		fmt.Println(c.Outcome, c.Kind, c.Name)
	}

	p, err := hub.Profile(ctx, me, agents.GhostKind, "", "analyst")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.SystemPrompt)
	for _, problem := range p.Problems {
		fmt.Println(problem)
	}
	// Output:
	// created Ghost analyst
	// You read numbers.
	// MCP server charts: not started: its command needs a review (state: pending)
}
