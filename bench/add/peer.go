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

// peer describes the npm package skills and the node executable that runs it.
type peer struct{ node, program, version string }

// findPeer finds the peer under an npm prefix. It prefers a node executable under the prefix
// over the one in PATH.
func findPeer(prefix string) (*peer, error) {
	if prefix == "" {
		return nil, errors.New("missing -peer")
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
		return nil, fmt.Errorf("get version of %s with %s: %w", p.program, p.node, err)
	}
	p.version = strings.TrimSpace(out)
	return p, nil
}

// command returns a command that runs the peer, with telemetry disabled and home as its
// project.
func (p *peer) command(home string, args ...string) command {
	return command{home: home, env: []string{"DISABLE_TELEMETRY=1", "DO_NOT_TRACK=1", "NO_COLOR=1"}, args: append([]string{p.node, p.program}, args...)}
}

// output runs a command without measuring it and returns its output.
func (c command) output() (string, error) {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Env = append([]string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH")}, c.env...)
	out, err := cmd.Output()
	return string(out), err
}
