//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// row holds the measurements of one command or baseline.
type row struct {
	wall, cpu, peak *measure.Row
}

// way is a method of accessing the repository, with its measurements.
type way struct {
	*bench
	name, url       string
	wall, cpu, peak measure.Table
	record          bool // whether to record the current round

	clone, refs, version, hash, scan, sync, budget, question *row
	addAll, addOne, list, current, changed, verify, frozen   *row
	peerAll, peerOne, peerList, peerCurrent                  *row
}

func (b *bench) newWay(name, url string) *way {
	w := &way{bench: b, name: name, url: url}
	w.wall.Name, w.cpu.Name, w.peak.Name = name+", wall", name+", CPU", name+", largest process"
	w.clone = w.row("baseline: git clone --depth 1", nil)
	w.refs = w.row("baseline: git ls-remote", nil)
	w.version = w.row("baseline: loadout version", nil)
	w.question = w.row("baseline: the two above together", nil)
	w.hash = w.row("baseline: read and hash every file", nil)
	w.scan = w.row("baseline: scan every skill", nil)
	w.sync = w.row("baseline: sync the written files to the disk", nil)
	w.budget = w.row("baseline: twice git clone plus the three above", nil)
	w.addAll = w.row("`loadout add --all`", w.budget)
	w.peerAll = w.row("peer: add all", w.budget)
	w.addOne = w.row("`loadout add --skill ONE`", w.clone)
	w.peerOne = w.row("peer: add one", w.clone)
	w.frozen = w.row("`loadout add --frozen`, all", w.budget)
	w.current = w.row("`loadout update --check`, nothing new", w.question)
	w.peerCurrent = w.row("peer: update, nothing new", w.question)
	w.changed = w.row("`loadout update --check`, one skill changed", w.clone)
	w.list = w.row("`loadout list`", w.version)
	w.peerList = w.row("peer: list", w.version)
	w.verify = w.row("`loadout verify`", w.hash)
	return w
}

func (w *way) row(name string, baseline *row) *row {
	wall, cpu := measure.Row{Name: name, Unit: "ms"}, measure.Row{Name: name, Unit: "ms"}
	if baseline != nil {
		wall.Baseline, cpu.Baseline = baseline.wall, baseline.cpu
	}
	return &row{w.wall.Row(wall), w.cpu.Row(cpu), w.peak.Row(measure.Row{Name: name, Unit: "MB"})}
}

// runRound takes each measurement once. It records the results if record is
// set.
func (w *way) runRound(record bool) error {
	w.record = record
	baselines, err := w.measureBaselines()
	if err != nil {
		return err
	}
	return errors.Join(w.withHome(func(home string) error { return w.measureGit(home, baselines) }), w.withHome(w.installAll), w.withHome(w.installOne), w.measurePeer())
}

// withHome calls fn with a new home directory and removes the directory
// afterwards.
func (w *way) withHome(fn func(home string) error) error {
	home, err := w.newHome()
	if err != nil {
		return err
	}
	return errors.Join(fn(home), os.RemoveAll(home))
}

// measureBaselines measures, in this process, the minimum work that any program must do with the
// files.
func (w *way) measureBaselines() (all measure.Cost, err error) {
	for _, part := range []struct {
		row *row
		of  func() (measure.Cost, error)
	}{
		{w.hash, func() (measure.Cost, error) { return measure.RunClean(w.repo.hashFiles) }},
		{w.scan, func() (measure.Cost, error) { return measure.RunClean(w.repo.scanSkills) }},
		{w.sync, w.bench.syncCopy},
	} {
		c, err := part.of()
		if err != nil {
			return all, err
		}
		w.add(part.row, cost{Cost: c})
		all.Wall, all.CPU = all.Wall+c.Wall, all.CPU+c.CPU
	}
	return all, nil
}

// measureGit measures git alone, and `loadout version` as the minimum cost of
// running loadout. Together with the given baselines, their costs are the
// budgets for installing all skills and for checking for updates.
func (w *way) measureGit(home string, baselines measure.Cost) error {
	clone, err := w.run(command{home: home, args: []string{w.repo.git, "clone", "--quiet", "--depth", "1", w.url, "clone"}})
	if err != nil {
		return err
	}
	refs, err := w.run(command{home: home, args: []string{w.repo.git, "ls-remote", "--quiet", w.url}})
	if err != nil {
		return err
	}
	start, err := w.run(command{home: home, args: []string{w.loadout, "version"}})
	if err != nil {
		return err
	}
	w.add(w.clone, clone)
	w.add(w.refs, refs)
	w.add(w.version, start)
	w.add(w.budget, cost{Cost: measure.Cost{Wall: 2*clone.Wall + baselines.Wall, CPU: 2*clone.CPU + baselines.CPU}})
	w.add(w.question, cost{Cost: measure.Cost{Wall: refs.Wall + start.Wall, CPU: refs.CPU + start.CPU}})
	return nil
}

// installAll installs all skills, then lists and verifies them and checks for updates.
func (w *way) installAll(home string) error {
	do := func(r *row, code int, args ...string) error {
		return w.measure(r, command{home: home, code: code, args: append([]string{w.loadout}, args...)})
	}
	installed := filepath.Join(home, ".loadout", "skills")
	if err := do(w.addAll, 0, "add", w.url, "--all", "--yes"); err != nil {
		return err
	}
	if err := w.checkComplete(installed); err != nil {
		return err
	}
	if err := errors.Join(do(w.list, 0, "list"), do(w.verify, 0, "verify"), do(w.current, 0, "update", "--check")); err != nil {
		return err
	}
	if err := w.repo.setMainBranch(w.repo.after); err != nil {
		return err
	}
	if err := errors.Join(do(w.changed, 1, "update", "--check"), w.repo.setMainBranch(w.repo.before)); err != nil {
		return err
	}
	return w.withHome(func(other string) error { return w.installFrozen(other, filepath.Join(installed, "loadout.lock")) })
}

// installFrozen installs the skills of a lockfile into a new home.
func (w *way) installFrozen(home, lock string) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	dir := filepath.Join(home, ".loadout", "skills")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "loadout.lock"), text, 0o644)); err != nil {
		return err
	}
	if err := w.measure(w.frozen, command{home: home, args: []string{w.loadout, "add", "--frozen"}}); err != nil {
		return err
	}
	return w.checkComplete(dir)
}

func (w *way) installOne(home string) error {
	return w.measure(w.addOne, command{home: home, args: []string{w.loadout, "add", w.url, "--skill", w.repo.skill}})
}

// measurePeer measures the same operations with the peer. It installs into a
// project, because the peer records repositories of arbitrary hosts only in
// projects. The peer cannot check for updates without installing them.
func (w *way) measurePeer() error {
	if w.peer == nil {
		return nil
	}
	add := func(home string, r *row, skills string) error {
		return w.measure(r, w.peer.command(home, "add", w.url, "--agent", "claude-code", "--skill", skills, "--copy", "--yes"))
	}
	return errors.Join(w.withHome(func(home string) error {
		if err := add(home, w.peerAll, "*"); err != nil {
			return err
		}
		if err := w.checkComplete(filepath.Join(home, ".claude", "skills")); err != nil {
			return err
		}
		return errors.Join(w.measure(w.peerList, w.peer.command(home, "list")),
			w.measure(w.peerCurrent, w.peer.command(home, "update", "--project", "--yes")))
	}), w.withHome(func(home string) error { return add(home, w.peerOne, w.repo.skill) }))
}

// checkComplete returns an error unless a directory contains all skills.
func (w *way) checkComplete(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "SKILL.md"))
	if err == nil && len(files) != w.repo.skills {
		err = fmt.Errorf("wrong number of skills in %s: want %d, got %d", dir, w.repo.skills, len(files))
	}
	return err
}

// measure runs a command and adds its cost to a row.
func (w *way) measure(r *row, c command) error {
	took, err := w.run(c)
	if err == nil {
		w.add(r, took)
	}
	return err
}

func (w *way) add(r *row, c cost) {
	if !w.record {
		return
	}
	r.wall.AddTime(c.Wall)
	r.cpu.AddTime(c.CPU)
	if c.peak > 0 {
		r.peak.Add(float64(c.peak) / 1e6)
	}
}

// printTables prints the tables. Each ratio compares a row with the baseline of the same round.
func (w *way) printTables() {
	for _, t := range []*measure.Table{&w.wall, &w.cpu, &w.peak} {
		fmt.Printf("\n%s:\n\n", t.Name)
		t.Print(os.Stdout)
	}
}
