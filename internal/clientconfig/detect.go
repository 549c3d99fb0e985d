package clientconfig

import (
	"os"
	"strings"
)

// traces lists what an installed client leaves on a machine. One of them
// suffices. Paths use slashes. A directory into which other programs install
// skills, such as ~/.claude, is no trace.
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
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
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
