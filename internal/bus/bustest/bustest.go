// Package bustest runs real Redis servers for tests.
package bustest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Server is a Redis server without persistence. It listens only on a Unix
// socket in a temporary directory.
type Server struct {
	dir   string
	cmd   *exec.Cmd
	alive io.Closer // closing it stops the server, as does the end of this process
}

// Start starts a server and stops it when the test ends. If Redis is missing,
// it skips the test, or fails it if LOADOUT_TEST_REDIS is set.
func Start(t testing.TB) *Server {
	t.Helper()
	program, err := program()
	if err != nil {
		if os.Getenv("LOADOUT_TEST_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "loadout-redis-") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := os.Symlink(program, s.program()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// program returns the path of the Redis server. It also accepts redis-check-rdb
// from Debian's package redis-tools: this is the same binary, and it runs as a
// server if it is started under the name redis-server.
func program() (string, error) {
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("redis-server not found: install Redis (Debian: apt-get install redis-tools)")
}

func (s *Server) program() string { return filepath.Join(s.dir, "redis-server") }

// URL returns the server's address.
func (s *Server) URL() string { return "unix://" + s.socket() }

func (s *Server) socket() string { return filepath.Join(s.dir, "redis.sock") }

// Start starts the server again after [Server.Stop] and waits until it accepts
// connections.
func (s *Server) Start() error {
	s.cmd = exec.Command("/bin/sh", "-c", `"$2" --port 0 --unixsocket "$1" --save "" --appendonly no & cat >/dev/null; kill -9 $!; wait`, "sh", s.socket(), s.program())
	s.cmd.Dir = s.dir
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.alive = in
	var stderr strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&stderr, lines.Text())
		if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
			return nil
		}
	}
	return fmt.Errorf("redis-server: %s", stderr.String())
}

// Stop kills the server, as if its machine had failed.
func (s *Server) Stop() error {
	if s.alive == nil {
		return nil
	}
	err := s.alive.Close()
	s.alive = nil
	s.cmd.Wait() // reports the kill signal
	return err
}
