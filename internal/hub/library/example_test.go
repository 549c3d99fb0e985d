package library_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

func Example() {
	dir, err := os.MkdirTemp("", "hub-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "hub.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	me := account.SinglePrincipal()
	if _, err := db.Users.Create(ctx, store.User{ID: string(me.User), Name: me.Name, Admin: true}); err != nil {
		log.Fatal(err)
	}
	lib, err := library.New(db, &library.Options{CacheDir: filepath.Join(dir, "files")})
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()

	var zip bytes.Buffer
	files := fstest.MapFS{
		"SKILL.md":       {Data: []byte("---\nname: greet\ndescription: Greets people.\n---\n\nSay hello.\n")},
		"scripts/say.sh": {Data: []byte("echo hello\n")},
	}
	if _, _, err := skill.WriteZIP(&zip, files, "greet"); err != nil {
		log.Fatal(err)
	}
	mine := store.UserNamespace(string(me.User))
	s, err := lib.Upload(ctx, me, mine, library.Package{FileName: "greet.zip", Data: &zip})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d files, code is %s\n", s.Name, s.Files, s.Review)
	fmt.Println(lib.CheckRunnable(ctx, me, s.Digest))
	if err := lib.ReviewVersion(ctx, me, s.ID, library.Decision{Digest: s.Digest, Review: library.Approved}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lib.CheckRunnable(ctx, me, s.Digest))

	sources, err := lib.Sources(ctx, me)
	if err != nil {
		log.Fatal(err)
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: sources})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	fmt.Print(rt.CatalogText(0))
	// Output:
	// greet: 2 files, code is pending
	// code of skill "greet" is not reviewed yet
	// <nil>
	// - greet: Greets people.
}
