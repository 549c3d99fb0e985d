//go:build linux

// Command add measures what it costs to get skills from a repository: `loadout add`,
// add --frozen, list, update --check and verify, beside git alone and beside the
// program that people use for it with npm:
//
//	go run ./bench/add -skills DIR [-n 400] [-peer DIR]
//
// The skills are committed to a repository that this program serves on a loopback
// address by git http-backend, and that is read as file:// too. Each command runs in
// a home of its own, and the commands of a round alternate. What is served is not part
// of the figures, but for file:// git serves it to itself. How to get the peer is in
// bench/README.md; without it the rows of it are left out.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	skills := flag.String("skills", "", "`directory` with skills, of which -n are served")
	n := flag.Int("n", 400, "how many skills")
	program := flag.String("loadout", "", "measure this `program`, in place of one that is built from here")
	peer := flag.String("peer", "", "`prefix` that npm has installed skills and node in")
	rounds := flag.Int("rounds", 7, "rounds")
	measure.Main("add", false, func() error {
		if *skills == "" || *n < 1 || *rounds < 1 {
			return errors.New("-skills names a directory with skills; -n and -rounds are at least 1")
		}
		return run(*skills, *n, *program, *peer, *rounds)
	})
}

func run(skills string, n int, program, peerDir string, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir}
	if program == "" {
		b.loadout, err = measure.Build(dir, "./cmd/loadout")
	} else {
		b.loadout, err = filepath.Abs(program)
	}
	if err != nil {
		return err
	}
	if b.repo, err = newRepository(dir, skills, n); err != nil {
		return err
	}
	defer b.repo.close()
	if b.peer, err = findPeer(peerDir); err != nil {
		fmt.Fprintf(os.Stderr, "add: without a peer: %v\n", err)
	}
	ways := []*way{b.newWay("http", b.repo.http), b.newWay("file", b.repo.file)}
	for i := range rounds + 1 {
		for _, w := range ways {
			if err := w.round(i > 0); err != nil { // the first fills the page cache
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Printf("%s; %d skills, %d files, %s MB\n", measure.Where(), b.repo.skills, b.repo.files, measure.Number(float64(b.repo.bytes)/1e6))
	if b.peer != nil {
		fmt.Printf("peer: skills %s\n", b.peer.version)
	}
	for _, w := range ways {
		fmt.Printf("\nFrom %s, %d rounds:\n\n", w.name, rounds)
		w.print()
	}
	return nil
}

// bench is what all ways of getting the skills have in common.
type bench struct {
	dir, loadout string
	repo         *repository
	peer         *peer // nil where there is none
}

// home makes a directory for one user of a program.
func (b *bench) home() (string, error) {
	if err := os.MkdirAll(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(b.dir, "home-")
}
