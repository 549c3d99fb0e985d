//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// key encrypts the secrets of the temporary hub.
const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// node is a running `loadout serve` process.
type node struct {
	cmd *exec.Cmd
	log bytes.Buffer
	url string
}

func (b *bench) start() (*node, error) {
	n := &node{cmd: exec.Command(b.program, "serve", "--json", "--addr", "127.0.0.1:0", "--data", b.home, "--database", b.database, "--accounts", "--log", "text")}
	if b.redis != "" {
		n.cmd.Args = append(n.cmd.Args, "--redis", b.redis)
	}
	n.cmd.Dir, n.cmd.Stderr, n.cmd.SysProcAttr = b.home, &n.log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CONFIG=", "LOADOUT_STATE=", "LOADOUT_CACHE=",
		"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "LOADOUT_HUB_RATE=100000", "LOADOUT_HUB_KEY="+key)
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	var greeting struct{ URL string }
	if err := json.NewDecoder(out).Decode(&greeting); err != nil {
		n.cmd.Process.Kill()
		n.cmd.Wait()
		return nil, fmt.Errorf("read hub URL: %w\n%s", err, &n.log)
	}
	n.url = greeting.URL
	return n, nil
}

func (n *node) pid() int { return n.cmd.Process.Pid }

// stop terminates the node's process. It can be called more than once.
func (n *node) stop() error {
	if n.cmd.ProcessState != nil {
		return nil
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := n.cmd.Wait(); err != nil {
		return fmt.Errorf("hub exited: %w\n%.2000s", err, &n.log)
	}
	return nil
}
