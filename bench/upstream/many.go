//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

const (
	servers = 50
	used    = 3
)

// measureMemory prints the memory usage and the number of processes with many configured
// servers, of which few are used.
func (s *site) measureMemory(flags) error {
	w := s.newOurs("`loadout mcp`", s.fifty)
	defer w.close()
	home := filepath.Join(s.dir, "many")
	for i := range used {
		var err error
		if i == 0 {
			err = w.start(home, i)
		} else {
			err = w.callTool(i)
		}
		if err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second) // let background work finish
	own, err := measure.PssOf(w.cmd.Process.Pid)
	if err != nil {
		return err
	}
	whole, processes := own, 1
	for _, pid := range descendants(w.cmd.Process.Pid) {
		if n, err := measure.PssOf(pid); err == nil { // otherwise the process has exited
			whole += n
			processes++
		}
	}
	table := measure.Table{Name: fmt.Sprintf("%d servers, %d used", servers, used)}
	table.RowNamed("processes", "").Add(float64(processes))
	table.RowNamed("Pss of the gateway", "MB").Add(float64(own) / 1e6)
	table.RowNamed("Pss with its servers", "MB").Add(float64(whole) / 1e6)
	fmt.Printf("%s:\n\n", table.Name)
	table.Print(os.Stdout)
	return nil
}

// descendants returns the IDs of all direct and indirect child processes.
func descendants(parent int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(rest) > 1 {
			ppid, _ := strconv.Atoi(rest[1])
			children[ppid] = append(children[ppid], pid)
		}
	}
	var all []int
	for next := children[parent]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// measureStarts prints the time from starting a program to the first tool result.
func (s *site) measureStarts(f flags) error {
	table := measure.Table{Name: "first result"}
	direct := table.Row(measure.Row{Name: "baseline: the server itself", Unit: "ms"})
	row := func(name string) *measure.Row {
		return table.Row(measure.Row{Name: name, Unit: "ms", Baseline: direct})
	}
	cold, warm := row("`loadout mcp`, nothing saved"), row("`loadout mcp`, saved listing")
	fiftyCold, fiftyWarm := row("the same with 50 servers, nothing saved"), row("the same with 50 servers, saved listing")
	for i := range f.starts {
		home := func(name string) string { return filepath.Join(s.dir, name+strconv.Itoa(i)) }
		runs := []struct {
			row  *measure.Row
			way  *way
			home string
		}{
			{direct, s.newDirect(), home("direct")},
			{cold, s.newOurs("loadout", s.one), home("one")},
			{warm, s.newOurs("loadout", s.one), home("one")},
			{fiftyCold, s.newOurs("loadout", s.fifty), home("fifty")},
			{fiftyWarm, s.newOurs("loadout", s.fifty), home("fifty")},
		}
		for _, r := range runs {
			began := time.Now()
			err := r.way.start(r.home, 0)
			r.row.AddTime(time.Since(began))
			r.way.close()
			if err != nil {
				return fmt.Errorf("%s: %w", r.row.Name, err)
			}
		}
	}
	table.Print(os.Stdout)
	return nil
}
