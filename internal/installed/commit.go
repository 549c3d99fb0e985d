package installed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// maxJournal is the maximum size of a journal in bytes. It is enough for twice
// MaxSkills steps.
const maxJournal = 8 << 20

const journalVersion = 1

// step is the change to a single skill in a commit.
type step struct {
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"` // digest of the new files; "" to remove the skill
	Was    bool   `json:"was"`              // whether a directory with that name existed before
}

func (s step) stagedPath() string   { return newPath + "/" + s.Name }
func (s step) replacedPath() string { return oldPath + "/" + s.Name }

type journal struct {
	Version int    `json:"version"`
	Skills  []step `json:"skills"`
}

// commit writes a journal, moves the skills, and then moves the lockfile. While
// the journal exists, the next change finishes the steps. If there is no
// journal, the next change removes all staged files.
func (c *Change) commit(ctx context.Context) error {
	steps := c.sortedSteps()
	if err := c.prepare(steps); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.publishJournal(); err != nil {
		return err
	}
	fresh := func(step) (bool, error) { return true, nil }
	if undo, err := c.moveSkills(steps, fresh); err != nil {
		return c.revert(undo, err)
	}
	// The change is complete. If the cleanup fails, the journal stays and the
	// next change repeats the cleanup.
	c.unreverted = c.removeJournal() != nil
	return nil
}

// prepare writes everything that needs disk space. It writes the journal last.
func (c *Change) prepare(steps []step) error {
	text, err := c.next.Encode()
	if err != nil {
		return err
	}
	record, err := json.Marshal(journal{journalVersion, steps})
	if err != nil {
		return err
	}
	for _, dir := range []string{newPath, oldPath} {
		if err := c.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := c.writeFile(nextPath, text); err != nil {
		return err
	}
	if err := c.checkFault("settle"); err != nil {
		return err
	}
	if err := syncTree(c.root, staging); err != nil {
		return fmt.Errorf("sync staging directory: %w", err)
	}
	return c.writeFile(draftPath, record)
}

// publishJournal makes the journal valid by renaming it.
func (c *Change) publishJournal() error {
	if err := c.rename(draftPath, journalPath); err != nil {
		return err
	}
	if err := c.syncDirs(staging); err != nil {
		return c.revert(nil, err)
	}
	return nil
}

// moveSkills executes the steps and then moves the lockfile. pending reports
// whether a step's new files have not been moved yet. If moveSkills fails, undo
// contains the functions that revert the moves.
func (c *Change) moveSkills(steps []step, pending func(step) (bool, error)) (undo []func() error, err error) {
	for _, s := range steps {
		back, err := c.moveSkill(s, pending)
		undo = append(undo, back...)
		if err != nil {
			return undo, err
		}
	}
	if c.exists(nextPath) {
		err = c.rename(nextPath, LockfileName) // the last step, which never needs to be reverted
	}
	return undo, err
}

func (c *Change) moveSkill(s step, pending func(step) (bool, error)) (undo []func() error, err error) {
	rename := func(from, to string) error {
		err := c.rename(from, to)
		if err == nil {
			undo = append(undo, func() error { return c.root.Rename(to, from) })
		}
		return err
	}
	old := s.Was && c.exists(s.Name) && !c.exists(s.replacedPath())
	if s.Digest == "" {
		if old {
			err = rename(s.Name, s.replacedPath())
		}
		return undo, err
	}
	if wait, err := pending(s); !wait {
		return nil, err
	}
	if old {
		err = c.exchange(s.stagedPath(), s.Name)
		if err == nil {
			return []func() error{func() error { return exchange(c.root, s.stagedPath(), s.Name) }}, nil
		}
		if errors.Is(err, errors.ErrUnsupported) { // without exchange, the directory is missing for a moment
			err = rename(s.Name, s.replacedPath())
		}
		if err != nil {
			return undo, err
		}
	}
	err = rename(s.stagedPath(), s.Name)
	return undo, err
}

func (c *Change) rename(from, to string) error {
	if err := c.checkFault("rename " + from); err != nil {
		return err
	}
	return c.root.Rename(from, to)
}

func (c *Change) exchange(a, b string) error {
	if err := c.checkFault("exchange " + a); err != nil {
		return err
	}
	return exchange(c.root, a, b)
}

func (c *Change) exists(p string) bool {
	_, err := c.root.Lstat(p)
	return err == nil
}

// syncDirs syncs directories, so that renames in them survive a power failure.
func (c *Change) syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := c.checkFault("sync " + dir); err != nil {
			return err
		}
		if err := syncDir(c.root, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}

// revert calls the undo functions and then removes the journal, because with a
// journal the next change would repeat the moves.
func (c *Change) revert(undo []func() error, why error) error {
	c.unreverted = true
	for _, back := range slices.Backward(undo) {
		if err := back(); err != nil {
			return fmt.Errorf("%w (undo failed; the next change will finish this one: %w)", why, err)
		}
	}
	unsettled := c.syncDirs(".", newPath, oldPath)
	if err := c.root.Remove(journalPath); err != nil {
		return fmt.Errorf("%w (undone, but the journal remains, so the next change will try again: %w)", why, err)
	}
	c.unreverted = false
	if unsettled != nil {
		return fmt.Errorf("%w (%w)", why, unsettled)
	}
	return why
}

// removeJournal syncs the moves and then removes the journal. Replaced files
// must not be removed before the journal: a stale journal could remove skills
// that were added later.
func (c *Change) removeJournal() error {
	if err := c.syncDirs(".", newPath, oldPath); err != nil {
		return err
	}
	if err := c.checkFault("remove the journal"); err != nil {
		return err
	}
	if err := c.root.Remove(journalPath); err != nil {
		return err
	}
	return c.syncDirs(staging)
}

func (c *Change) removeStaged() error {
	var errs []error
	for _, p := range []string{partPath, newPath, oldPath, nextPath, draftPath} {
		if err := c.checkFault("clean " + p); err != nil {
			return err
		}
		errs = append(errs, c.removeAll(p))
	}
	return errors.Join(errs...)
}

// recover finishes a commit whose process was killed, and removes the staged
// files.
func (c *Change) recover() error {
	steps, err := c.readJournal()
	if !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = c.finishInterrupted(steps)
		}
		if err != nil {
			c.unreverted = true
			return err
		}
	}
	if err := c.removeStaged(); err != nil {
		return err
	}
	return c.writeIgnoreFile()
}

func (c *Change) finishInterrupted(steps []step) error {
	if _, _, err := readLockAt(c.root, nextPath, ParseLockfile); err != nil {
		return err
	}
	// After an exchange, the old files are at the path of the new files.
	pending := func(s step) (bool, error) {
		if !c.exists(s.stagedPath()) {
			return false, nil
		}
		digest, err := c.digest(s.stagedPath())
		return digest == s.Digest, err
	}
	if _, err := c.moveSkills(steps, pending); err != nil {
		return err
	}
	return c.removeJournal()
}

func (c *Change) readJournal() ([]step, error) {
	data, err := readNoFollow(c.root, journalPath, maxJournal)
	if err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(data, &j); err != nil || j.Version != journalVersion || len(data) > maxJournal {
		return nil, fmt.Errorf("invalid or unsupported %s: update loadout or move %s away", journalPath, staging)
	}
	for _, s := range j.Skills {
		if err := checkName(s.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", journalPath, err)
		}
		if info, err := c.root.Lstat(s.Name); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s: %w", journalPath, &ConflictError{Name: s.Name, Differences: []Difference{{Name: s.Name, Kind: NotPlain}}})
		}
	}
	return j.Skills, nil
}

// writeIgnoreFile writes a .gitignore that excludes staged files from
// repositories.
func (c *Change) writeIgnoreFile() error {
	err := c.writeFile(ignorePath, []byte("*\n"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// writeFile creates a file and syncs it.
func (c *Change) writeFile(p string, data []byte) error {
	if err := c.checkFault("write " + p); err != nil {
		return err
	}
	f, err := c.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
