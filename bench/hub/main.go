//go:build linux

// Command hub measures what a hub costs a team: lists, searches and downloads of many
// skills by many users, conversations at once on the demonstration, and memory.
//
//	go run ./bench/hub -skills DIR [-n 10000] [-users 200] [-groups 20] [-chats 200]
//
// The hub is a process of `loadout serve`, once on SQLite and once on a PostgreSQL server
// that the program starts. Skills are uploaded through the API: half of them public, a
// quarter of groups, a quarter of the users' own. Each figure stands beside one of the
// same run: an indexed SELECT of as many rows from the same database, answered over HTTP
// too; http.ServeFile of the same package; and the same bytes from memory. They are taken
// in turns.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// size is how much there is of everything.
type size struct{ skills, users, groups, chats, rounds int }

func main() {
	dir := flag.String("skills", "", "`directory` with skills")
	program := flag.String("loadout", "", "measure this `program`, in place of one that is built from here")
	only := flag.String("on", "", "SQLite or PostgreSQL alone")
	var s size
	flag.IntVar(&s.skills, "n", 10000, "how many skills")
	flag.IntVar(&s.users, "users", 200, "how many users")
	flag.IntVar(&s.groups, "groups", 20, "how many groups")
	flag.IntVar(&s.chats, "chats", 200, "how many conversations at once")
	flag.IntVar(&s.rounds, "rounds", 7, "rounds")
	measure.Main("hub", false, func() error {
		if *dir == "" || min(s.skills, s.users, s.groups, s.chats, s.rounds) < 1 {
			return errors.New("-skills names a directory with skills; all numbers are at least 1")
		}
		return run(*dir, *program, *only, s)
	})
}

func run(skills, program, only string, s size) (err error) {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program, err = measure.Build(dir, "./cmd/loadout")
	} else {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s; %d skills, %d users in %d groups\n", measure.Where(), s.skills, s.users, s.groups)
	if only != "PostgreSQL" {
		home := filepath.Join(dir, "sqlite")
		if err := (&bench{size: s, program: program, home: home, database: "sqlite:" + filepath.Join(home, "hub.db")}).run("SQLite", skills); err != nil {
			return fmt.Errorf("SQLite: %w", err)
		}
	}
	if only == "SQLite" {
		return nil
	}
	server, err := storetest.StartServer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := (&bench{size: s, program: program, home: filepath.Join(dir, "postgres"), database: server.URL()}).run("PostgreSQL", skills); err != nil {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	return nil
}
