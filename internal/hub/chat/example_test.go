package chat_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/store"
)

func ExampleEngine() {
	dir, err := os.MkdirTemp("", "hub-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "hub.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
		"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	})}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	me := account.SinglePrincipal()
	e := chat.New(db, chat.Options{
		Setup: func(context.Context, chat.Request) (*chat.Setup, error) {
			told := agent.Options{Instructions: "Skills:\n" + rt.CatalogText(0)}
			return &chat.Setup{Runtime: rt, Model: demo.New(nil), Agent: told}, nil
		},
		Principal: func(context.Context, account.UserID) (account.Principal, error) { return me, nil },
	})
	defer e.Close(ctx)
	c, err := e.Create(ctx, me, "", "Tides")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := e.SendMessage(ctx, me, c.ID, chat.Message{Text: "Please load the skill tides."}); err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range e.Watch(ctx, me, c.ID, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Step != nil && ev.Step.Loaded != nil {
			fmt.Println("loaded", ev.Step.Loaded.Skill.Name)
		}
		if ev.Type == chat.TurnEnded {
			fmt.Println(ev.Reason)
			break
		}
	}
	// Output:
	// loaded tides
	// done
}
