package clientconfig

import (
	"os"
	"path/filepath"
	"strings"
)

// traces lists programs, files and directories that show that a client is
// installed. Any one of them is sufficient. Paths use slashes. A directory into
// which other programs install skills, such as ~/.claude, is not a trace, and
// neither is an empty directory.
type traces struct {
	commands []string // programs in PATH
	home     []string // files and directories relative to Environment.Home
	appData  []string // files and directories relative to the system's directory for application data
}

// Installed reports whether c appears to be installed, and the path of the
// program, file or directory that shows it. The file in which c stores the
// user's servers counts too, unless other programs also use it.
//
// In addition to the variables of [Environment], it reads PATH.
func (c Client) Installed(p Environment) (path string, ok bool) {
	for _, name := range c.traces.commands {
		if path := p.lookPath(name); path != "" {
			return path, true
		}
	}
	var candidates []string
	if file, err := c.Path(p, User); err == nil {
		candidates = append(candidates, file)
	}
	if p.Home != "" {
		for _, t := range c.traces.home {
			candidates = append(candidates, p.join(p.Home, t))
		}
		for _, t := range c.traces.appData {
			candidates = append(candidates, p.join(p.appData(), t))
		}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && (!info.IsDir() || hasFiles(path)) {
			return path, true
		}
	}
	return "", false
}

// hasFiles reports whether a directory contains anything other than empty
// directories, which an earlier connection may have left. If the directory
// cannot be read, hasFiles returns true.
func hasFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true // it exists
	}
	for _, e := range entries {
		if !e.IsDir() || hasFiles(filepath.Join(dir, e.Name())) {
			return true
		}
	}
	return false
}

// lookPath returns the path of a program in an absolute directory of PATH, or
// "".
func (p Environment) lookPath(name string) string {
	separator, suffixes := ":", []string{""}
	if p.OS == "windows" {
		separator, suffixes = ";", []string{".exe", ".cmd", ".bat"}
	}
	for dir := range strings.SplitSeq(p.getenv("PATH"), separator) {
		if !p.isAbs(dir) {
			continue
		}
		for _, suffix := range suffixes {
			path := p.join(dir, name+suffix)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && (p.OS == "windows" || info.Mode().Perm()&0o111 != 0) {
				return path
			}
		}
	}
	return ""
}
