package loadout_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"slices"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// table is a source that holds the text of each SKILL.md by name, as a
// database would.
type table map[string]string

func (t table) Origin() string       { return "handbook" }
func (t table) Scope() catalog.Scope { return catalog.Group }

func (t table) List(context.Context) (catalog.Listing, error) {
	var l catalog.Listing
	for _, name := range slices.Sorted(maps.Keys(t)) {
		s, ds := skill.ParseBytes([]byte(t[name]), skill.FileName, name)
		for _, d := range ds.Problems() {
			l.Problems = append(l.Problems, catalog.Problem{Path: "handbook:" + name, Origin: t.Origin(), Diagnostic: d})
		}
		if s != nil && ds.Loads() {
			l.Entries = append(l.Entries, catalog.EntryOf(t, s, name))
		}
	}
	return l, nil
}

func (t table) Open(_ context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	text, ok := t[e.Dir]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return skill.NewBundle(fstest.MapFS{skill.FileName: {Data: []byte(text)}}, e.Dir, nil), nil
}

func Example_source() {
	rt, err := loadout.New(context.Background(), &loadout.Options{Sources: []catalog.Source{table{
		"expenses": "---\nname: expenses\ndescription: How to hand in expenses.\n---\nKeep the receipts.\n",
		"travel":   "---\nname: travel\n---\nBook early.\n",
	}}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	fmt.Println(rt.Catalog().Snapshot().Problems()[0])
	fmt.Print(rt.CatalogText(0))
	// Output:
	// handbook:travel:2:1: error: Missing required field in frontmatter: description [description-missing]
	//     add a line description: that says what the skill does and when to use it
	// - expenses: How to hand in expenses.
}
