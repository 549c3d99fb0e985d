package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Server is a PostgreSQL server with a new database in a temporary directory.
// It listens on a socket in that directory and on no port, so that no other
// user can reach it.
type Server struct {
	bin   string // directory of its programs
	dir   string
	guard *exec.Cmd
	alive io.Closer // stdin of guard
}

// StartServer starts a server. The caller must close it.
func StartServer() (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "loadout-pg-") // socket paths must be short
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir}
	err = changeOwner(dir)
	if err == nil {
		err = s.startGuard()
	}
	if err == nil {
		err = s.run("initdb", "--pgdata", s.data(), "--username", "loadout", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startGuard starts a process that stops the server and removes its directory
// as soon as the test process closes a pipe or exits.
func (s *Server) startGuard() error {
	s.guard = exec.Command("/bin/sh", "-c", `cat >/dev/null; "$1" stop --silent --mode immediate --pgdata "$2/data" >/dev/null 2>&1; rm -rf "$2"`,
		"sh", filepath.Join(s.bin, "pg_ctl"), s.dir)
	s.guard.Dir = "/"
	dropPrivileges(s.guard)
	alive, err := s.guard.StdinPipe()
	if err != nil {
		return err
	}
	s.alive = alive
	return s.guard.Start()
}

// findPrograms returns the directory containing initdb, searching PATH and then
// the Debian install locations.
func findPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("initdb not found: install PostgreSQL (Debian: apt-get install postgresql)")
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the server's address. Add parameters with &.
func (s *Server) URL() string { return s.address("postgres") }

// address returns the address of one of the server's databases.
func (s *Server) address(database string) string {
	return "postgres:///" + database + "?user=loadout&host=" + url.QueryEscape(s.dir)
}

// exec runs a statement.
func (s *Server) exec(statement string) error {
	db, err := sql.Open("pgx", s.URL())
	if err != nil {
		return err
	}
	_, err = db.Exec(statement)
	return errors.Join(err, db.Close())
}

// Start starts the server again after [Server.Stop] and waits until it accepts
// connections.
func (s *Server) Start() error {
	return s.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", s.data(), "--log", filepath.Join(s.dir, "log"), "--options",
		"-c listen_addresses='' -c unix_socket_directories="+s.dir+" -c fsync=off -c full_page_writes=off -c autovacuum=off -c max_connections=200 -c shared_buffers=64MB")
}

// Stop stops the server immediately, as if its machine had failed. Its
// connections break.
func (s *Server) Stop() error {
	return s.run("pg_ctl", "stop", "--wait", "--silent", "--mode", "immediate", "--pgdata", s.data())
}

// Close stops the server and removes its directory.
func (s *Server) Close() error {
	if s.alive == nil { // the guard was never started
		return os.RemoveAll(s.dir)
	}
	return errors.Join(s.alive.Close(), s.guard.Wait())
}

// run runs one of the server's programs as a user that PostgreSQL accepts.
func (s *Server) run(program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	dropPrivileges(cmd)
	log, err := os.CreateTemp("", "loadout-pg-") // not a pipe, which the server would keep open
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		data, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", program, err, data)
	}
	return nil
}
