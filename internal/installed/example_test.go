package installed_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
)

func Example() {
	top, err := os.MkdirTemp("", "installed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	ctx := context.Background()

	dir := installed.Open(filepath.Join(top, ".loadout", "skills"))
	change, err := dir.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer change.Close()
	entry := installed.Entry{From: remote.Location{Kind: remote.Git, URL: "https://example.com/skills"}}
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n")}}
	if _, err := change.Put(ctx, "pdf", entry, files); err != nil {
		log.Fatal(err)
	}
	if err := change.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	lock, err := dir.Lockfile()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("from", lock.Skills["pdf"].From.URL)

	if err := os.WriteFile(filepath.Join(dir.Path(), "pdf", "SKILL.md"), []byte("mine"), 0o644); err != nil {
		log.Fatal(err)
	}
	differences, err := dir.Verify(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range differences {
		fmt.Println(d.Name, d)
	}
	// Output:
	// from https://example.com/skills
	// pdf SKILL.md is changed
}
