package signature_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// A publisher signs a skill. Whoever has the public key can detect that a script was
// changed afterwards.
func Example() {
	private, public, err := signature.GenerateKey("example.com/tools")
	if err != nil {
		fmt.Println(err)
		return
	}
	files := fstest.MapFS{
		"SKILL.md":        {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n")},
		"scripts/read.py": {Data: []byte("print('read')\n")},
	}
	m, _, err := skill.ReadManifest(files)
	if err != nil {
		fmt.Println(err)
		return
	}
	sig, err := signature.Sign(m, "pdf", private, signature.Release{})
	if err != nil {
		fmt.Println(err)
		return
	}
	files[signature.FileName] = &fstest.MapFile{Data: sig}

	m, _, _ = skill.ReadManifest(files)
	fmt.Println(signature.Verify(m, "pdf", sig, public))

	files["scripts/read.py"].Data = []byte("print('something else')\n")
	m, _, _ = skill.ReadManifest(files)
	fmt.Println(signature.Verify(m, "pdf", sig, public))
	// Output:
	// <nil>
	// verify skill "pdf": skill "pdf" differs from the signed one: changed: "scripts/read.py"
}

// The key that a source is first seen with is kept; another one is noticed.
func ExamplePins_Check() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	pins := signature.Pins{Path: filepath.Join(dir, "publishers.json")}
	_, key, _ := signature.GenerateKey("example.com/tools")
	_, other, _ := signature.GenerateKey("example.com/tools")

	for _, key := range []string{key, key, other} {
		pinned, err := pins.Check(context.Background(), "https://example.com/skills.git", key)
		_, changed := errors.AsType[*signature.ChangedKeyError](err)
		fmt.Println("first:", pinned.First, "changed:", changed)
	}
	// Output:
	// first: true changed: false
	// first: false changed: false
	// first: false changed: true
}
