package remote_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

func ExampleClient_Open() {
	folder, err := os.MkdirTemp("", "skills-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	dir := filepath.Join(folder, "greet")
	if err := os.Mkdir(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	const text = "---\nname: greet\ndescription: Greets people.\n---\n\nSay hello.\n"
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	offer, err := remote.New(nil).Open(ctx, remote.Location{Kind: remote.Local, URL: folder})
	if err != nil {
		log.Fatal(err)
	}
	defer offer.Close()
	for _, s := range offer.Skills {
		bundle, err := offer.OpenSkill(ctx, s)
		if err != nil {
			log.Fatal(err)
		}
		files, _, err := skill.ReadManifest(bundle.FS)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s %d file, %d bytes\n", s.Name, s.Description, len(files), files.Size())
		bundle.Close()
	}
	// Output: greet: Greets people. 1 file, 60 bytes
}
