package catalog_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/loadout-dev/loadout/catalog"
)

func Example() {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	own := catalog.NewFS("own", catalog.User, fstest.MapFS{
		"pdf/SKILL.md":   file("---\nname: pdf\ndescription: Reads PDF files.\nversion: 1.2.0\n---\nOpen the file.\n"),
		"draft/SKILL.md": file("# A skill to be\n"),
	})
	team := catalog.NewFS("team", catalog.Group, fstest.MapFS{
		"pdf/SKILL.md":    file("---\nname: pdf\ndescription: Reads PDF files as we do.\nversion: 2.0.0\n---\nAsk Ann.\n"),
		"report/SKILL.md": file("---\nname: report\ndescription: Writes the weekly report.\ndependencies: [pdf]\n---\nWrite it.\n"),
	})

	ctx := context.Background()
	c, err := catalog.New([]catalog.Source{own, team}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Reload(ctx); err != nil {
		fmt.Println(err)
		return
	}
	s := c.Snapshot()
	fmt.Print(catalog.Format(s.ForModel(), catalog.FormatOptions{Characters: 2000}))
	for _, x := range s.Explain("pdf") {
		fmt.Printf("%s/%s %s: %s\n", x.Origin, x.Name, x.Version, x.Reason)
	}
	e, _ := s.Get("report")
	order, _ := c.LoadOrder(ctx, e)
	for _, l := range order {
		fmt.Printf("%s: %s", l.Entry.Name, l.Skill.Instructions)
	}
	for _, p := range s.Problems() {
		fmt.Println(p.Path, p.Code)
	}
	_, err = s.Get("pdf@^3")
	fmt.Println(err)
	// Output:
	// - pdf: Reads PDF files.
	// - report: Writes the weekly report.
	// own/pdf 1.2.0: first of 2 by scope, then by order of sources
	// team/pdf 2.0.0: scope group comes after user
	// pdf: Open the file.
	// report: Write it.
	// own:draft frontmatter-missing
	// skill "pdf@^3" is not available: own/pdf has version 1.2.0; team/pdf has version 2.0.0
}
