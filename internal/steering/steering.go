// Package steering identifies the files that steer programs and agents: files
// that make a program run commands, or that an agent obeys, when a user works
// in their directory. Code that changes a user's directory must not write them
// without the user's consent. The package performs no I/O.
//
// Start reading at [Classify]. The table is in table.go.
package steering

import (
	"strings"
	"unicode"
)

// Class determines who must approve a change to a file before it is applied.
type Class int

// Classes of files.
const (
	Ordinary   Class = iota // nobody
	Steering                // the user, who must see the change
	Dependency              // nobody; the catalog reads no skills there
)

// String returns the name of the class in lower case.
func (c Class) String() string {
	switch c {
	case Steering:
		return "steering"
	case Dependency:
		return "dependency"
	}
	return "ordinary"
}

// Classify returns the class of a file by its path relative to a user's
// directory, with slashes. For a steering file it also returns the program that
// reads the file, such as "Claude Code". The file need not exist. Names match
// in any letter case, and in any form that a file system of macOS or Windows
// would resolve to the same file. Names of dependency directories match
// exactly.
func Classify(path string) (Class, string) {
	at := Top
	for name := range strings.SplitSeq(path, "/") {
		at = at.Child(name)
	}
	return at.Class(), at.reader
}

// Position is a location in a directory tree. It is comparable, and safe for
// concurrent use.
type Position struct {
	zone   zone
	class  Class
	reader string
}

// Top is the position of the user's directory. If a directory above it contains
// files that change what programs do, use [Position.Enter] instead.
var Top Position

type zone int

const (
	plain  zone = iota
	inside      // everything below has the class of the position
	gitDir
	gitHooks
	gitInfo
	gitModules
	yarnDir
	skillDir
)

// Class returns the class of a file or symlink at the position.
func (p Position) Class() Class { return p.class }

// DirClass returns the class of a directory at the position. A Git directory itself
// is ordinary, although most files in it are not.
func (p Position) DirClass() Class {
	if p.zone != inside {
		return Ordinary
	}
	return p.class
}

// Reader returns the program that reads a steering file at the position.
func (p Position) Reader() string { return p.reader }

// Child returns the position of the entry with the given name in the directory
// at p.
func (p Position) Child(name string) Position {
	if name == "" || name == "." {
		return p
	}
	switch p.zone {
	case inside:
		return p
	case gitDir, gitHooks, gitInfo, gitModules:
		return p.gitChild(fold(name))
	case yarnDir:
		if folded := fold(name); folded == "releases" || folded == "plugins" { // Yarn runs them; the rest is a cache
			return Position{inside, Steering, "Yarn"}
		}
	}
	if IsDependencyDir(name) {
		return Position{inside, Dependency, ""}
	}
	child := namedChild(name)
	if p.zone == skillDir && child == (Position{}) {
		return p
	}
	return child
}

// Enter returns the position of the entry with the given name in the directory
// at p. The entry is the user's directory or one above it. Unlike Child, Enter
// ignores names that do not begin with a dot, because they are also names of
// projects. It also ignores dependency directories, because the user chose to
// work there.
func (p Position) Enter(name string) Position {
	if p.zone == plain && !strings.HasPrefix(fold(name), ".") {
		return p
	}
	child := p.Child(name)
	if child.zone == inside && child.class != Steering {
		return Top
	}
	return child
}

// namedChild returns the position of a directory entry with the given name,
// based on the name only. name must not be that of a dependency directory.
func namedChild(name string) Position {
	folded := fold(name)
	if folded == ".git" || folded == "git~1" {
		// A file .git names the directory of a repository elsewhere.
		return Position{gitDir, Steering, git}
	}
	if folded == ".yarn" {
		return Position{zone: yarnDir}
	}
	if reader := readerOf(folded); reader != "" {
		return Position{inside, Steering, reader}
	}
	return Position{}
}

// GitDir returns the position of the directory at p, given that it is a Git
// directory, which contains HEAD, objects and refs. Its name does not matter.
// Below modules and worktrees of a Git directory, only its content
// distinguishes a Git directory from its parents, because a submodule's name
// can contain slashes.
func (p Position) GitDir() Position {
	switch p.zone {
	case plain:
		return Position{gitDir, Ordinary, ""}
	case gitModules:
		return Position{gitDir, Steering, git}
	}
	return p
}

// SkillDir returns the position of the directory at p, given that it is the
// directory of a skill, which contains a file accepted by [IsSkillFile]. Its
// name does not matter. Agents follow instructions in the files of a skill, and
// run its scripts.
func (p Position) SkillDir() Position {
	if p.zone != plain {
		return p
	}
	return Position{skillDir, Steering, agents}
}

// Hold returns the position of the directory at p, given that the program named
// reader takes instructions or settings from every file in it.
func (p Position) Hold(reader string) Position { return Position{inside, Steering, reader} }

// InPlainDir reports whether p is an ordinary directory: not in a steering
// directory, a skill, a Git directory or a dependency directory.
func (p Position) InPlainDir() bool { return p.zone == plain }

// InGit reports whether p is the directory of a Git repository or below one.
func (p Position) InGit() bool {
	switch p.zone {
	case gitDir, gitHooks, gitInfo, gitModules:
		return true
	}
	return p.zone == inside && p.reader == git
}

// gitChild returns the position of the entry with the given name in the
// directory at p, which is a Git directory or below one. An entry is a steering
// file unless it is known to contain only data.
func (p Position) gitChild(name string) Position {
	data, steers := Position{inside, Ordinary, ""}, Position{inside, Steering, git}
	switch p.zone {
	case gitHooks:
		if strings.HasSuffix(name, ".sample") {
			return data
		}
		return steers
	case gitInfo:
		if name == "exclude" || name == "refs" {
			return data
		}
		return steers
	case gitModules:
		return Position{gitModules, Steering, git} // the name of a submodule has any depth; see GitDir
	}
	switch {
	case dataDirs[name], dataFiles[name], strings.HasSuffix(name, "_head"):
		return data
	case name == "hooks", name == "branches", name == "remotes":
		return Position{gitHooks, Steering, git}
	case name == "info":
		return Position{gitInfo, Steering, git}
	case name == "modules", name == "worktrees":
		return Position{gitModules, Steering, git}
	case strings.HasSuffix(name, ".lock") && dataFiles[strings.TrimSuffix(name, ".lock")]:
		return data
	}
	return steers
}

// IsDependencyDir reports whether name is a directory into which package
// managers install third-party code. Everything below it may change without the
// user's consent, so the catalog searches no such directory for skills. The
// name must match exactly, so that both rules apply to the same spellings on a
// file system that ignores case.
func IsDependencyDir(name string) bool { return dependencyDirs[name] }

// IsSkillFile reports whether a file system may treat name as SKILL.md, in any
// letter case.
func IsSkillFile(name string) bool { return fold(name) == "skill.md" }

// readerOf returns the program that reads files with the given folded name, or
// "" if none is known.
func readerOf(folded string) string {
	if reader := names[folded]; reader != "" {
		return reader
	}
	for _, b := range bases {
		if strings.HasPrefix(folded, b.base) {
			return b.reader
		}
	}
	for _, s := range suffixes {
		if strings.HasSuffix(folded, s.suffix) {
			return s.reader
		}
	}
	return shortNames()[folded]
}

// fold returns the name that file systems compare: without letter case, without
// the invisible characters that HFS+ ignores, and without the stream and the
// trailing dots and spaces that NTFS ignores.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r)) // both, because several letters have the same capital
	}, name)
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	if short := strings.TrimRight(name, ". "); short != "" {
		return short
	}
	return name
}
