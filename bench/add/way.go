//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// row is one thing that is measured.
type row struct {
	name      string
	limit     *row
	goal      float64 // × limit of wall time, at most; 0 for none
	wall, cpu *measure.Row
	peak      *measure.Row
}

// way is one way to reach the repository, and what was measured of it.
type way struct {
	*bench
	name, url string
	rows      []*row
	keep      bool // of this round

	clone, refs, version, hash, scan, settle, budget, question *row
	addAll, addOne, list, current, changed, verify, frozen     *row
	peerAll, peerOne, peerList, peerCurrent                    *row
}

func (b *bench) newWay(name, url string) *way {
	w := &way{bench: b, name: name, url: url}
	w.clone = w.row("limit: git clone --depth 1", nil)
	w.refs = w.row("limit: git ls-remote", nil)
	w.version = w.row("limit: loadout version", nil)
	w.question = w.row("limit: these two", nil)
	w.hash = w.row("limit: read and hash every file", nil)
	w.scan = w.row("limit: scan every skill", nil)
	w.settle = w.row("limit: wait for the disk, once they are written", nil)
	w.budget = w.row("limit: twice git clone, and the three above", nil)
	w.addAll = w.row("`loadout add --all`", w.budget)
	w.addAll.goal = 1
	w.peerAll = w.row("peer: add all", w.budget)
	w.addOne = w.row("`loadout add --skill ONE`", w.clone)
	w.peerOne = w.row("peer: add one", w.clone)
	w.frozen = w.row("`loadout add --frozen`, all", w.budget)
	w.frozen.goal = 1
	w.current = w.row("`loadout update --check`, nothing new", w.question)
	w.current.goal = 2
	w.peerCurrent = w.row("peer: update, nothing new", w.question)
	w.changed = w.row("`loadout update --check`, one skill changed", w.clone)
	w.list = w.row("`loadout list`", w.version)
	w.peerList = w.row("peer: list", w.version)
	w.verify = w.row("`loadout verify`", w.hash)
	return w
}

func (w *way) row(name string, limit *row) *row {
	r := &row{name: name, limit: limit, wall: &measure.Row{Unit: "ms"}, cpu: &measure.Row{Unit: "ms"}, peak: &measure.Row{Unit: "MB"}}
	if limit != nil {
		r.wall.Limit, r.cpu.Limit = limit.wall, limit.cpu
	}
	w.rows = append(w.rows, r)
	return r
}

// round does everything once; keep is whether the figures count.
func (w *way) round(keep bool) error {
	w.keep = keep
	limits, err := w.limits()
	if err != nil {
		return err
	}
	return errors.Join(w.inHome(func(home string) error { return w.git(home, limits) }), w.inHome(w.all), w.inHome(w.one), w.peers())
}

// inHome does something with a new home.
func (w *way) inHome(do func(home string) error) error {
	home, err := w.home()
	if err != nil {
		return err
	}
	return errors.Join(do(home), os.RemoveAll(home))
}

// limits measures what there is to do with the files in any case, in this process.
func (w *way) limits() (all measure.Cost, err error) {
	for _, part := range []struct {
		row *row
		of  func() (measure.Cost, error)
	}{
		{w.hash, func() (measure.Cost, error) { return measure.OfClean(w.repo.hashFiles) }},
		{w.scan, func() (measure.Cost, error) { return measure.OfClean(w.repo.scanSkills) }},
		{w.settle, w.bench.settle},
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

// git measures git alone, and a start of loadout that does nothing: by these and by
// limits, what getting all skills may take, and asking for newer ones.
func (w *way) git(home string, limits measure.Cost) error {
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
	w.add(w.budget, cost{Cost: measure.Cost{Wall: 2*clone.Wall + limits.Wall, CPU: 2*clone.CPU + limits.CPU}})
	w.add(w.question, cost{Cost: measure.Cost{Wall: refs.Wall + start.Wall, CPU: refs.CPU + start.CPU}})
	return nil
}

// all gets all skills, and does with them what a person does later.
func (w *way) all(home string) error {
	do := func(r *row, code int, args ...string) error {
		return w.measure(r, command{home: home, code: code, args: append([]string{w.loadout}, args...)})
	}
	installed := filepath.Join(home, ".loadout", "skills")
	if err := do(w.addAll, 0, "add", w.url, "--all", "--yes"); err != nil {
		return err
	}
	if err := w.complete(installed); err != nil {
		return err
	}
	if err := errors.Join(do(w.list, 0, "list"), do(w.verify, 0, "verify"), do(w.current, 0, "update", "--check")); err != nil {
		return err
	}
	if err := w.repo.set(w.repo.after); err != nil {
		return err
	}
	if err := errors.Join(do(w.changed, 1, "update", "--check"), w.repo.set(w.repo.before)); err != nil {
		return err
	}
	return w.inHome(func(other string) error { return w.again(other, filepath.Join(installed, "loadout.lock")) })
}

// again gets the skills of a lock in a home without them.
func (w *way) again(home, lock string) error {
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
	return w.complete(dir)
}

// one gets one skill.
func (w *way) one(home string) error {
	return w.measure(w.addOne, command{home: home, args: []string{w.loadout, "add", w.url, "--skill", w.repo.skill}})
}

// peers does the same with the peer, in a project, which is where it keeps what it got
// from where of repositories of any host. It has nothing that only looks for what is
// newer.
func (w *way) peers() error {
	if w.peer == nil {
		return nil
	}
	add := func(home string, r *row, skills string) error {
		return w.measure(r, w.peer.command(home, "add", w.url, "--agent", "claude-code", "--skill", skills, "--copy", "--yes"))
	}
	return errors.Join(w.inHome(func(home string) error {
		if err := add(home, w.peerAll, "*"); err != nil {
			return err
		}
		if err := w.complete(filepath.Join(home, ".claude", "skills")); err != nil {
			return err
		}
		return errors.Join(w.measure(w.peerList, w.peer.command(home, "list")),
			w.measure(w.peerCurrent, w.peer.command(home, "update", "--project", "--yes")))
	}), w.inHome(func(home string) error { return add(home, w.peerOne, w.repo.skill) }))
}

// complete checks that all skills are in a directory.
func (w *way) complete(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "SKILL.md"))
	if err == nil && len(files) != w.repo.skills {
		err = fmt.Errorf("%s has %d skills, not %d", dir, len(files), w.repo.skills)
	}
	return err
}

// measure runs a command for a row.
func (w *way) measure(r *row, c command) error {
	took, err := w.run(c)
	if err == nil {
		w.add(r, took)
	}
	return err
}

func (w *way) add(r *row, c cost) {
	if !w.keep {
		return
	}
	r.wall.AddTime(c.Wall)
	r.cpu.AddTime(c.CPU)
	r.peak.Add(float64(c.peak) / 1e6)
}

// print writes the table. Ratios are by the limit of the same round.
func (w *way) print() {
	out := [][]string{{"what", "wall", "range", "× limit", "CPU", "× limit", "largest process", "goal"}}
	for _, r := range w.rows {
		if r.wall.Median() == 0 {
			continue
		}
		text := []string{r.name, ms(r.wall), measure.Number(r.wall.Quantile(0)) + "–" + measure.Number(r.wall.Quantile(1)), "", ms(r.cpu), "", "", ""}
		if r.limit != nil {
			text[3], text[5] = measure.Number(r.wall.Ratio()), measure.Number(r.cpu.Ratio())
		}
		if peak := r.peak.Median(); peak > 0 {
			text[6] = measure.Number(peak) + " MB"
		}
		if r.goal > 0 {
			text[7] = measure.Verdict(fmt.Sprintf("≤ %s × limit", measure.Number(r.goal)), r.wall.Ratio() <= r.goal)
		}
		out = append(out, text)
	}
	measure.Markdown(os.Stdout, out)
}

func ms(r *measure.Row) string { return measure.Number(r.Median()) + " ms" }
