//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is the program skills of npm, and a node that runs it.
type peer struct{ node, program, version string }

// findPeer looks for what npm has installed below a prefix; the node of that is used,
// or else that of the machine. The error says what is missing.
func findPeer(prefix string) (*peer, error) {
	if prefix == "" {
		return nil, errors.New("-peer names none")
	}
	prefix, err := filepath.Abs(prefix)
	if err != nil {
		return nil, err
	}
	p := &peer{node: filepath.Join(prefix, "node_modules", "node", "bin", "node"), program: filepath.Join(prefix, "node_modules", "skills", "bin", "cli.mjs")}
	if _, err := os.Stat(p.program); err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.node); err != nil {
		if p.node, err = exec.LookPath("node"); err != nil {
			return nil, err
		}
	}
	out, err := p.command(prefix, "--version").output()
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", p.program, p.node, err)
	}
	p.version = strings.TrimSpace(out)
	return p, nil
}

// command is one of the peer in the project that home is, with its telemetry off.
func (p *peer) command(home string, args ...string) command {
	return command{home: home, env: []string{"DISABLE_TELEMETRY=1", "DO_NOT_TRACK=1", "NO_COLOR=1"}, args: append([]string{p.node, p.program}, args...)}
}

// output runs a command without measuring it.
func (c command) output() (string, error) {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Env = append([]string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH")}, c.env...)
	out, err := cmd.Output()
	return string(out), err
}
