//go:build linux

// Command add measures `loadout add`, add --frozen, list, update --check and verify with the
// skills of a repository. It compares them with git alone and with the npm program skills:
//
//	go run ./add -skills DIR [-n 400] [-peer DIR]
//
// The program commits the skills to a repository and serves it on a loopback address with
// git http-backend. It also accesses the repository through a file:// URL. Each command has
// its own home directory, and the commands of a round alternate. The measurements exclude the
// server, except with file://, where git itself is the server. bench/README.md describes how
// to install the peer; without it, its rows are omitted.
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
	skills := flag.String("skills", "", "`directory` with skills")
	n := flag.Int("n", 400, "number of skills to serve")
	peer := flag.String("peer", "", "npm `prefix` with the packages skills and node")
	rounds := flag.Int("rounds", 7, "number of rounds")
	measure.Main("add", false, func() error {
		if *skills == "" || *n < 1 || *rounds < 1 {
			return errors.New("missing -skills, or -n or -rounds is less than 1")
		}
		return run(*skills, *n, *peer, *rounds)
	})
}

func run(skills string, n int, peerDir string, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir}
	if b.loadout, err = measure.BuildLoadout(dir); err != nil {
		return err
	}
	if b.repo, err = newRepository(dir, skills, n); err != nil {
		return err
	}
	defer b.repo.close()
	if b.peer, err = findPeer(peerDir); err != nil {
		fmt.Fprintf(os.Stderr, "add: no peer: %v\n", err)
	}
	ways := []*way{b.newWay("http", b.repo.http), b.newWay("file", b.repo.file)}
	for i := range rounds + 1 {
		for _, w := range ways {
			if err := w.runRound(i > 0); err != nil { // the first round only fills the page cache
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Printf("%s; %d skills, %d files, %s MB\n", measure.Environment(), b.repo.skills, b.repo.files, measure.FormatNumber(float64(b.repo.bytes)/1e6))
	if b.peer != nil {
		fmt.Printf("peer: skills %s\n", b.peer.version)
	}
	for _, w := range ways {
		fmt.Printf("\nFrom %s, %d rounds:\n\n", w.name, rounds)
		w.printTables()
	}
	return nil
}

// bench holds the state of one run, shared by all methods of accessing the
// repository.
type bench struct {
	dir, loadout string
	repo         *repository
	peer         *peer // nil if not installed
}

// newHome creates an empty home directory.
func (b *bench) newHome() (string, error) {
	if err := os.MkdirAll(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(b.dir, "home-")
}
