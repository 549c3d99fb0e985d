//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mcpProxyVersion is the version of mcp-proxy that -peers installs from the npm registry.
const mcpProxyVersion = "6.7.19"

// peers maps names of peers to their programs.
type peers map[string]string

// Set implements [flag.Value]. It adds a peer, given as NAME=PROGRAM.
func (p peers) Set(text string) error {
	name, program, ok := strings.Cut(text, "=")
	if !ok || !slices.Contains(peerNames(), name) {
		return fmt.Errorf("want NAME=PROGRAM, where NAME is one of %s", strings.Join(peerNames(), ", "))
	}
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode()&0o111 == 0 {
		err = errors.New("not an executable file: " + path)
	}
	p[name] = path
	return err
}

// String implements [flag.Value].
func (p peers) String() string { return "" }

// peerNames returns the names of all peers that a program can be given.
func peerNames() []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.peers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// install installs mcp-proxy into a directory, unless a program was given.
func (p peers) install(ctx context.Context, dir string) error {
	if p["mcp-proxy"] != "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "mcp-proxy@"+mcpProxyVersion)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install mcp-proxy: %w\n%s", err, out)
	}
	p["mcp-proxy"] = filepath.Join(dir, "node_modules", ".bin", "mcp-proxy")
	return nil
}

// args returns the arguments that give a program its peers.
func (p peers) args(names []string) []string {
	var args []string
	for _, name := range names {
		if p[name] != "" {
			args = append(args, "-peer", name+"="+p[name])
		}
	}
	return args
}
