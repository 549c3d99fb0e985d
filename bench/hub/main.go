//go:build linux

// Command hub measures a hub with many users: lists, searches and downloads of many skills,
// concurrent conversations with the built-in demo model, and memory.
//
//	go run ./hub -skills DIR [-n 10000] [-users 200] [-groups 20] [-chats 200]
//	go run ./hub -turns 1000 [-base PROGRAM]
//	go run ./hub -nodes [-base PROGRAM] [-chats 32]
//	go run ./hub -mcp [-n 10000] [-users 60] [-active 60] [-talk]
//	go run ./hub -idle
//
// With -mcp, it measures only the MCP endpoint, with generated skills, for the first users.
// With -talk, it measures conversations after that.
//
// The hub is a `loadout serve` process, once with SQLite and once with a PostgreSQL server that
// the program starts. The program uploads skills through the API: half of them to the public
// namespace, a quarter to groups and a quarter to users. It compares each request with a baseline
// measured in the same run: an indexed SELECT of as many rows from the same database, served
// over HTTP; http.ServeFile with the same package; and the same bytes from memory. The
// measurements alternate. With -turns, it measures only the turns of a conversation that
// grows, alternating with those of the program given with -base. With -nodes, it measures only
// what a second node adds to the CPU time of a turn, with PostgreSQL and Redis. With -idle, it
// measures only the memory of an empty hub with SQLite, half a second after its last work.
package main

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// size holds the numbers of objects to create and of rounds to run.
type size struct {
	skills, users, active, groups, chats, rounds, turns int
	talk                                                bool // whether to measure conversations after the MCP endpoint
}

// The values of the flags -nodes and -idle: whether to measure only a hub with two
// nodes, or only an idle one.
var nodes, idle bool

func main() {
	dir := flag.String("skills", "", "`directory` with skills")
	only := flag.String("on", "", "only `DATABASE`: SQLite or PostgreSQL")
	base := flag.String("base", "", "with -turns and -nodes: `program` to compare with")
	flag.BoolVar(&nodes, "nodes", false, "measure only what a second node adds to a turn")
	mcp := flag.Bool("mcp", false, "measure only the MCP endpoint")
	flag.BoolVar(&idle, "idle", false, "measure only the memory of an idle hub")
	var s size
	flag.BoolVar(&s.talk, "talk", false, "with -mcp, measure conversations too")
	flag.IntVar(&s.active, "active", 0, "number of users at the MCP endpoint (default all)")
	flag.IntVar(&s.skills, "n", 10000, "number of skills")
	flag.IntVar(&s.users, "users", 200, "number of users")
	flag.IntVar(&s.groups, "groups", 20, "number of groups")
	flag.IntVar(&s.chats, "chats", 200, "number of concurrent conversations")
	flag.IntVar(&s.rounds, "rounds", 7, "number of rounds")
	flag.IntVar(&s.turns, "turns", 0, "measure only a conversation that grows to `N` turns, without skills")
	measure.Main("hub", false, func() error {
		if idle && s.rounds > 0 {
			return measureIdle(s)
		}
		if s.active == 0 || s.active > s.users {
			s.active = s.users
		}
		if *dir == "" && s.turns == 0 && !*mcp && !nodes || min(s.skills, s.users, s.groups, s.chats, s.rounds) < 1 {
			return errors.New("missing -skills, or a number is less than 1")
		}
		return run(*dir, *base, *only, *mcp, s)
	})
}

func run(skills, base, only string, mcp bool, s size) (err error) {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := measure.BuildLoadout(dir)
	if base != "" && err == nil {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		return err
	}
	if s.turns > 0 || nodes {
		fmt.Println(measure.Environment())
	} else {
		fmt.Printf("%s; %d skills, %d users in %d groups\n", measure.Environment(), s.skills, s.users, s.groups)
	}
	if only != "PostgreSQL" && !nodes {
		home := filepath.Join(dir, "sqlite")
		b := &bench{size: s, program: program, home: home, database: "sqlite:" + filepath.Join(home, "hub.db")}
		other := &bench{size: s, program: base, home: home + "-base", database: "sqlite:" + filepath.Join(home+"-base", "hub.db")}
		if err := b.measure("SQLite", skills, mcp, other); err != nil {
			return fmt.Errorf("benchmark SQLite: %w", err)
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
	b := &bench{size: s, program: program, home: filepath.Join(dir, "postgres"), database: server.URL()}
	other := &bench{size: s, program: base, home: b.home + "-base"}
	if base != "" {
		if other.database, err = createDatabase(server.URL(), "base"); err != nil {
			return err
		}
	}
	if err := b.measure("PostgreSQL", skills, mcp, other); err != nil {
		return fmt.Errorf("benchmark PostgreSQL: %w", err)
	}
	return nil
}

// createDatabase creates a database on a server and returns its URL.
func createDatabase(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	db, err := sql.Open("pgx", server)
	if err != nil {
		return "", err
	}
	_, err = db.Exec("CREATE DATABASE " + name)
	u.Path = "/" + name
	return u.String(), errors.Join(err, db.Close())
}

// measure measures only the MCP endpoint, a long conversation or two nodes if a
// flag selects one of them, and everything else otherwise. If other.program is
// set, it also measures other in a long conversation or with two nodes.
func (b *bench) measure(name, skills string, mcp bool, other *bench) error {
	switch {
	case mcp:
		return b.runMCP(name)
	case nodes && other.program != "":
		return measureNodes([]*bench{b, other})
	case nodes:
		return measureNodes([]*bench{b})
	case b.turns > 0 && other.program != "":
		return measureLong(name, []*bench{b, other})
	case b.turns > 0:
		return measureLong(name, []*bench{b})
	}
	return b.run(name, skills)
}
