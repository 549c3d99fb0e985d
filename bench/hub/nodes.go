//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// turnsPerRound is the number of turns of each conversation in a round.
const turnsPerRound = 3

// cluster is a program that runs two nodes of a hub.
type cluster struct {
	*bench
	name        string
	second      *node
	redis       *exec.Cmd
	alone, both []*chat // conversations that are all on the first node, and conversations of which half are on each node
	cpu         [2][]float64
}

// measureNodes measures the CPU time per turn of two nodes in two cases: one
// node has all conversations, or each node has half of them. The rounds of the
// programs and of both cases alternate. The time of the database and of Redis
// is not included.
func measureNodes(all []*bench) (err error) {
	var clusters []*cluster
	for i, b := range all {
		c := &cluster{bench: b, name: []string{"", "base"}[i]}
		defer func() { err = errors.Join(err, c.close()) }()
		if err := c.open(); err != nil {
			return err
		}
		clusters = append(clusters, c)
	}
	for round := range all[0].rounds + 1 {
		for _, c := range clusters {
			for i, chats := range [][]*chat{c.alone, c.both} {
				cpu := measure.CPUOf(c.node.pid()) + measure.CPUOf(c.second.pid())
				for range turnsPerRound {
					if _, err := c.sendToAll(chats); err != nil {
						return err
					}
				}
				cpu = measure.CPUOf(c.node.pid()) + measure.CPUOf(c.second.pid()) - cpu
				if round > 0 {
					c.cpu[i] = append(c.cpu[i], cpu.Seconds()*1e3/float64(turnsPerRound*len(chats)))
				}
			}
		}
	}
	table := [][]string{{"program", "all turns on one node, CPU per turn, ms", "half on each node", "added by the second node"}}
	for _, c := range clusters {
		one, two := measure.Quantile(c.cpu[0], 0.5), measure.Quantile(c.cpu[1], 0.5)
		table = append(table, []string{c.name, measure.FormatNumber(one), measure.FormatNumber(two), fmt.Sprintf("%.1f ms, %.0f %%", two-one, (two/one-1)*100)})
	}
	fmt.Println()
	measure.WriteMarkdown(os.Stdout, table)
	return nil
}

func (c *cluster) open() (err error) {
	second := c.home + "-second"
	if err := errors.Join(os.MkdirAll(c.home, 0o700), os.MkdirAll(second, 0o700)); err != nil {
		return err
	}
	c.users, c.groups = c.chats, 1
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * c.chats}, Timeout: 10 * time.Minute}
	if err := c.createUsers(); err != nil {
		return err
	}
	if c.redis, c.bench.redis, err = startRedis(c.home); err != nil {
		return err
	}
	if c.node, err = c.start(); err != nil {
		return err
	}
	other := &bench{size: c.size, program: c.program, home: second, database: c.database, redis: c.bench.redis, client: c.client}
	if c.second, err = other.start(); err != nil {
		return err
	}
	other.node = c.second
	for i, token := range c.tokens {
		alone, err := c.startChat(token)
		if err != nil {
			return err
		}
		b := c.bench
		if i%2 == 1 {
			b = other
		}
		both, err := b.startChat(token)
		if err != nil {
			return err
		}
		c.alone, c.both = append(c.alone, alone), append(c.both, both)
	}
	return nil
}

func (c *cluster) close() error {
	for _, t := range append(c.alone, c.both...) {
		t.close()
	}
	var errs []error
	for _, n := range []*node{c.node, c.second} {
		if n != nil {
			errs = append(errs, n.stop())
		}
	}
	if c.redis != nil {
		errs = append(errs, c.redis.Process.Kill())
		c.redis.Wait()
	}
	return errors.Join(errs...)
}

// startRedis starts a Redis server without persistence and returns its URL.
// Debian's redis-tools contains it as redis-check-rdb.
func startRedis(dir string) (*exec.Cmd, string, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if program, err = exec.LookPath("redis-check-rdb"); err != nil {
			return nil, "", err
		}
	}
	link, socket := filepath.Join(dir, "redis-server"), filepath.Join(dir, "redis")
	if err := os.Symlink(program, link); err != nil {
		return nil, "", err
	}
	cmd := exec.Command(link, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	return cmd, "unix://" + socket, nil
}
