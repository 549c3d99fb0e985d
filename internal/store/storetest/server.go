package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Server is a PostgreSQL server with a new database in a temporary directory. It
// listens on a socket in there and on no port, so that none has to be free and nobody
// else can reach it.
type Server struct {
	bin   string // where its programs are
	dir   string
	guard *exec.Cmd
	alive io.Closer // the input of guard
}

// StartServer starts a server. Who started it closes it.
func StartServer() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "loadout-pg-") // a short path: those of sockets are bounded
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir}
	err = giveAway(dir)
	if err == nil {
		err = s.watch()
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

// watch starts a process that stops the server and removes its directory when the one
// that runs the tests closes a pipe, or ends in whatever way.
func (s *Server) watch() error {
	s.guard = exec.Command("/bin/sh", "-c", `cat >/dev/null; "$1" stop --silent --mode immediate --pgdata "$2/data" >/dev/null 2>&1; rm -rf "$2"`,
		"sh", filepath.Join(s.bin, "pg_ctl"), s.dir)
	s.guard.Dir = "/"
	lower(s.guard)
	alive, err := s.guard.StdinPipe()
	if err != nil {
		return err
	}
	s.alive = alive
	return s.guard.Start()
}

// programs finds where initdb is: in the PATH, or where Debian keeps it.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("there is no initdb: PostgreSQL is not installed (Debian: apt-get install postgresql)")
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL is the address of the server; parameters can be added to it with &.
func (s *Server) URL() string {
	return "postgres:///postgres?user=loadout&host=" + url.QueryEscape(s.dir)
}

// Start starts the server again after [Server.Stop], and waits until it answers.
func (s *Server) Start() error {
	return s.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", s.data(), "--log", filepath.Join(s.dir, "log"), "--options",
		"-c listen_addresses='' -c unix_socket_directories="+s.dir+" -c fsync=off -c max_connections=200 -c shared_buffers=64MB")
}

// Stop stops the server at once, as when its machine fails; clients see their
// connections end.
func (s *Server) Stop() error {
	return s.run("pg_ctl", "stop", "--wait", "--silent", "--mode", "immediate", "--pgdata", s.data())
}

// Close stops the server and removes what it kept.
func (s *Server) Close() error {
	if s.alive == nil { // it was never watched
		return os.RemoveAll(s.dir)
	}
	return errors.Join(s.alive.Close(), s.guard.Wait())
}

// run runs a program of the server, as a user that it agrees to run as.
func (s *Server) run(program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	lower(cmd)
	log, err := os.CreateTemp("", "loadout-pg-") // not a pipe: the server would keep it open
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", program, err, said)
	}
	return nil
}
