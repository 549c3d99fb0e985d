package overlay

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/steering"
)

// Limits on the search for references to files.
const (
	maxAliasScan = 100_000 // entries of directories, nearest first
	maxFollowed  = 40      // symlinks in a chain, as in Linux
	maxConfigs   = 1000    // Git configurations
)

// aliases finds the files in a directory that other files refer to: the targets
// of symlinks named like a steering file, such as docs/guide.md if CLAUDE.md is
// a symlink to it, and the files named in Git configurations. Changing such a
// file changes the instructions that a program follows.
type aliases struct {
	top     top
	dir     string // path of the directory on the host, without symlinks
	lower   *os.Root
	upper   *os.Root          // nil without an overlay
	readers map[string]string // program that reads a path and everything below it, by path in lower case
	scanned map[string]bool
	queue   []aliasDir
	seen    int // number of directory entries read
	configs int
}

// aliasDir is a directory to search for symlinks. If reader is set, all its
// symlinks are followed; otherwise, only those whose paths make them steering
// files.
type aliasDir struct {
	path   string
	at     steering.Position
	reader string
}

// findAliases finds the references in a directory. If upper is not nil, it also
// follows symlinks as they will be after the changes in upper.
func findAliases(lower, upper *os.Root, top top) *aliases {
	a := &aliases{top: top, dir: lower.Name(), lower: lower, upper: upper, readers: map[string]string{}, scanned: map[string]bool{}}
	if abs, err := filepath.Abs(a.dir); err == nil {
		a.dir = abs
	}
	if real, err := filepath.EvalSymlinks(a.dir); err == nil {
		a.dir = real
	}
	for dir := a.dir; dir != filepath.Dir(dir); { // a directory of a repository
		dir = filepath.Dir(dir)
		a.addRepository(dir, filepath.Join(dir, ".git"))
	}
	a.queue = []aliasDir{{"", top.at, ""}}
	a.scan()
	return a
}

// reader returns the program that reads a file because a symlink or a Git
// configuration refers to that file or to a directory above it. It returns "" if
// there is none.
func (a *aliases) reader(name string) string {
	for p := strings.ToLower(name); p != "."; p = path.Dir(p) {
		if reader := a.readers[p]; reader != "" {
			return reader
		}
	}
	return ""
}

// scan searches the directories in the queue.
func (a *aliases) scan() {
	for len(a.queue) > 0 && a.seen < maxAliasScan {
		d := a.queue[0]
		a.queue = a.queue[1:]
		if a.scanned[d.path+"\x00"+d.reader] {
			continue
		}
		a.scanned[d.path+"\x00"+d.reader] = true
		a.scanDir(d)
	}
}

func (a *aliases) scanDir(d aliasDir) {
	f, err := a.lower.OpenFile(dotIfEmpty(d.path), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	a.seen += len(entries)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	host := a.host(d.path)
	if isGitDir(names) {
		if !d.at.InGit() { // a bare repository
			a.addRepository(host, host)
		}
		d.at = d.at.GitDir()
	}
	if (d.path != "" || a.top.inSkills) && slices.ContainsFunc(names, steering.IsSkillFile) {
		d.at = d.at.SkillDir()
	}
	for _, e := range entries {
		full, at := path.Join(d.path, e.Name()), d.at.Child(e.Name())
		reader := d.reader
		if at.Class() == steering.Steering {
			reader = at.Reader()
		}
		if at.InGit() && !d.at.InGit() { // .git, a file in a worktree or submodule
			a.addRepository(host, filepath.Join(host, e.Name()))
		}
		switch {
		case e.IsDir() && (at.DirClass() != steering.Dependency || d.reader != "") && !(d.at.InGit() && at.Class() == steering.Ordinary):
			a.queue = append(a.queue, aliasDir{full, at, d.reader})
		case e.Type() == fs.ModeSymlink && reader != "":
			a.addSymlink(full, reader)
		}
	}
}

// addSymlink adds the file to which a symlink points, as resolved in the lower
// directory and as resolved in the overlay.
func (a *aliases) addSymlink(name, reader string) {
	for _, merged := range []bool{false, true} {
		if _, target, ok := a.lstat(a.host(name), merged); ok && target != "" {
			a.follow(filepath.Dir(a.host(name)), target, reader, merged)
		}
	}
}

// follow adds the target of a symlink, which need not exist, and all symlinks
// in the chain to it. It follows symlinks outside of the directory too, because
// they can lead back into it, but adds only paths inside.
func (a *aliases) follow(dir, target, reader string, merged bool) {
	at, rest := splitTarget(dir, target)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		_, target, ok := a.lstat(next, merged)
		if !ok || target == "" {
			at = next
			continue
		}
		a.add(next, reader)
		if links++; links > maxFollowed {
			return
		}
		var more []string
		at, more = splitTarget(at, target)
		rest = slices.Concat(more, rest)
	}
	a.add(at, reader)
	if rel, ok := a.rel(at); ok && rel != "." {
		a.queue = append(a.queue, aliasDir{rel, a.top.positionOf(rel), reader})
	}
}

// splitTarget returns the directory that a symlink's target is relative to, and
// the path elements of the target.
func splitTarget(dir, target string) (at string, names []string) {
	target = filepath.FromSlash(target)
	if filepath.IsAbs(target) {
		dir = filepath.VolumeName(target) + string(filepath.Separator)
		target = target[len(filepath.VolumeName(target)):]
	}
	return dir, strings.Split(target, string(filepath.Separator))
}

// add adds a path on the host if it is inside the directory.
func (a *aliases) add(host, reader string) {
	if rel, ok := a.rel(host); ok && rel != "." && reader != "" {
		a.readers[strings.ToLower(rel)] = reader
	}
}

// lstat returns the type of a file on the host, and the target of a symlink.
func (a *aliases) lstat(host string, merged bool) (mode fs.FileMode, target string, ok bool) {
	rel, inside := a.rel(host)
	if !inside {
		fi, err := os.Lstat(host)
		if err != nil {
			return 0, "", false
		}
		if fi.Mode().Type() == fs.ModeSymlink {
			target, err = os.Readlink(host)
		}
		return fi.Mode(), target, err == nil
	}
	for _, root := range []*os.Root{a.upper, a.lower} {
		if root == nil || root == a.upper && !merged {
			continue
		}
		fi, err := root.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || isWhiteout(fi) {
			return 0, "", false
		}
		if fi.Mode().Type() == fs.ModeSymlink {
			target, err = root.Readlink(rel)
		}
		return fi.Mode(), target, err == nil
	}
	return 0, "", false
}

// host returns the path of a file on the host.
func (a *aliases) host(name string) string { return filepath.Join(a.dir, filepath.FromSlash(name)) }

// rel converts a path on the host to one relative to the directory. It returns
// false for a path outside the directory.
func (a *aliases) rel(host string) (string, bool) {
	rel, err := filepath.Rel(a.dir, host)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// addRepository adds the files that the configuration of a repository names.
// gitDir may be a file that contains the path of the repository's directory.
func (a *aliases) addRepository(worktree, gitDir string) {
	if data, err := readConfig(gitDir); err == nil {
		to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
		if !ok {
			return
		}
		gitDir = joinHost(worktree, to)
	}
	a.addConfig(worktree, filepath.Join(gitDir, "config"))
	a.addConfig(worktree, filepath.Join(gitDir, "config.worktree"))
	if data, err := readConfig(filepath.Join(gitDir, "commondir")); err == nil {
		a.addConfig(worktree, filepath.Join(joinHost(gitDir, strings.TrimRight(string(data), "\r\n")), "config"))
	}
}

// addConfig adds the files that a Git configuration names or includes.
func (a *aliases) addConfig(worktree, file string) {
	if a.configs >= maxConfigs {
		return
	}
	if data, err := readConfig(file); err == nil {
		a.configs++
		a.addSettings(worktree, file, data)
	}
}

func (a *aliases) addSettings(worktree, file string, data []byte) {
	files, includes := steering.GitConfigPaths(data)
	for _, name := range files {
		a.follow(worktree, name, "Git", false)
		a.follow(worktree, name, "Git", true)
	}
	for _, name := range includes {
		a.follow(filepath.Dir(file), name, "Git", true)
		a.addConfig(worktree, joinHost(filepath.Dir(file), name))
	}
}

func joinHost(dir, name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// readConfig reads a small regular file.
func readConfig(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, steering.MaxGitConfig))
}
