package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/store"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "hub.db"), nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()

	text := []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n")
	hashes, err := db.Blobs.Put(ctx, text)
	if err != nil {
		panic(err)
	}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		skill, err := tx.Skills.Create(ctx, store.Skill{Namespace: store.Public, Name: "pdf"})
		if err != nil {
			return err
		}
		version := store.Version{SkillID: skill.ID, Digest: "sha256:…", Description: "Reads PDF files."}
		files := []store.File{{Path: "SKILL.md", SHA256: hashes[0], Size: int64(len(text))}}
		version, err = tx.Versions.Add(ctx, version, files, nil)
		if err != nil {
			return err
		}
		return tx.Skills.SetCurrent(ctx, skill.ID, version.Number)
	})
	if err != nil {
		panic(err)
	}

	skills, _, err := db.Skills.List(ctx, store.SkillQuery{Namespaces: []store.Namespace{store.Public}})
	if err != nil {
		panic(err)
	}
	for _, s := range skills {
		fmt.Printf("%s, version %d: %s\n", s.Name, s.Number, s.Description)
	}
	_, err = db.Skills.Create(ctx, store.Skill{Namespace: store.Public, Name: "pdf"})
	fmt.Println(errors.Is(err, store.ErrExists), err)
	// Output:
	// pdf, version 1: Reads PDF files.
	// true add skill "pdf": already exists
}

func ExampleEvents_Append() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(dir, "hub.db"), nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()

	last, err := db.Events.Append(ctx, "session", 0, store.Event{Kind: "message"}, store.Event{Kind: "text"})
	fmt.Println(last, err)
	_, err = db.Events.Append(ctx, "session", 1, store.Event{Kind: "late"}) // by one who saw the first only
	fmt.Println(errors.Is(err, store.ErrConflict))
	// Output:
	// 2 <nil>
	// true
}
