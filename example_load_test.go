package loadout_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
)

// skillTree is a set of skills in memory; embed.FS and os.DirFS work as well.
var skillTree = fstest.MapFS{
	"tides/SKILL.md": {Data: []byte(`---
name: tides
description: Reads tide tables. Use it when someone asks for high or low water.
---
Look the harbour up in references/harbours.md, then add one hour in summer.
`)},
	"tides/references/harbours.md": {Data: []byte("# Harbours\n\nCuxhaven: 12:10\n")},
}

// This example is a complete embedding: the catalog for the system prompt, and
// a load for the model's tool call.
func Example() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skillTree)},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	fmt.Print(rt.CatalogText(2000))

	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	res, err := s.Load(ctx, "tides", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.State)
	fmt.Print(res.Text)
	// Output:
	// - tides: Reads tide tables. Use it when someone asks for high or low water.
	// loaded
	// Skill tides (from mine) is loaded. Follow its instructions where they apply.
	//
	// Look the harbour up in references/harbours.md, then add one hour in summer.
	//
	// Files of this skill: references/harbours.md
}
