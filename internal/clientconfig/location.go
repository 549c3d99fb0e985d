package clientconfig

import (
	"fmt"
	"os"
	"strings"
)

// Environment describes where configuration files are located. It replaces the
// environment of the process, which this package does not read.
type Environment struct {
	// OS is a GOOS value. All values except "windows" and "darwin" mean XDG
	// directories.
	OS string
	// Home is the user's home directory.
	Home string
	// Dir is the absolute root directory of the project. Parent directories are
	// not searched.
	Dir string
	// Getenv returns environment variables, like os.Getenv; nil means none. It
	// is called for APPDATA, LOCALAPPDATA, XDG_CONFIG_HOME, the variables with
	// which clients move their files, such as CLAUDE_CONFIG_DIR, and by
	// [Client.Installed] for PATH. A relative XDG_CONFIG_HOME is ignored, as
	// its specification requires; the others are relative to Dir.
	Getenv func(string) string
}

// location describes where a client stores its file for one scope. The first
// field that is set determines the path. Paths use slashes.
type location struct {
	project    string // relative to Environment.Dir
	env, inEnv string // variable that contains a directory, and the path in that directory
	packaged   string // relative to %LOCALAPPDATA% on Windows, if that directory exists
	windows    string // relative to %APPDATA%, only on Windows
	darwin     string // relative to Environment.Home, only on macOS
	xdg        string // relative to $XDG_CONFIG_HOME, or ~/.config, on all systems
	home       string // relative to Environment.Home
	appData    string // relative to the system's directory for application data
	instead    string // replaces project or xdg if only this file exists
	note       string // note for the user about this file
}

// Path returns the path of the file in which c stores its servers for scope s;
// "" means the default scope of c. The file need not exist.
//
// Path returns [ErrUnsupported] if c does not support the scope, and another
// error if p lacks a required directory. It only does I/O for clients whose file
// has several possible paths, to check which of them exists.
func (c Client) Path(p Environment, s Scope) (string, error) {
	s, err := c.resolveScope(s)
	if err != nil {
		return "", err
	}
	l := c.where[s]
	if l.project != "" {
		if p.Dir == "" {
			return "", fmt.Errorf("project directory unknown; specify the configuration file of %s", c.Title)
		}
		return p.existingFile(p.join(p.Dir, l.project), p.Dir, l.instead), nil
	}
	if dir := p.getenv(l.env); dir != "" {
		return p.join(p.makeAbsolute(dir), l.inEnv), nil
	}
	if p.Home == "" {
		return "", fmt.Errorf("home directory unknown; set HOME, or specify the configuration file of %s", c.Title)
	}
	if l.packaged != "" && p.OS == "windows" {
		file := p.join(p.dirOr("LOCALAPPDATA", "AppData/Local"), l.packaged)
		if info, err := os.Stat(file[:strings.LastIndexByte(file, '\\')]); err == nil && info.IsDir() {
			return file, nil
		}
	}
	switch {
	case l.windows != "" && p.OS == "windows":
		return p.join(p.appData(), l.windows), nil
	case l.darwin != "" && p.OS == "darwin":
		return p.join(p.Home, l.darwin), nil
	case l.xdg != "":
		return p.existingFile(p.join(p.xdgConfig(), l.xdg), p.xdgConfig(), l.instead), nil
	case l.home != "":
		return p.join(p.Home, l.home), nil
	}
	return p.join(p.appData(), l.appData), nil
}

// appData returns the directory that Electron calls appData.
func (p Environment) appData() string {
	switch p.OS {
	case "windows":
		return p.dirOr("APPDATA", "AppData/Roaming")
	case "darwin":
		return p.join(p.Home, "Library/Application Support")
	}
	return p.xdgConfig()
}

// xdgConfig returns the base directory for configuration files.
func (p Environment) xdgConfig() string {
	if dir := p.getenv("XDG_CONFIG_HOME"); p.isAbs(dir) {
		return dir
	}
	return p.join(p.Home, ".config")
}

// existingFile returns file, or the path of alternative in dir if only that
// file exists. alternative is a file name or "".
func (p Environment) existingFile(file, dir, alternative string) string {
	if alternative == "" {
		return file
	}
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if other := p.join(dir, alternative); isFile(other) {
		return other
	}
	return file
}

// otherFile returns the file that c reads for scope s in addition to the one
// that [Client.Path] returns, or "" if no such file exists.
func (c Client) otherFile(p Environment, s Scope) string {
	s, err := c.resolveScope(s)
	if err != nil || c.where[s].instead == "" || p.getenv(c.where[s].env) != "" {
		return ""
	}
	dir := p.Dir
	if c.where[s].project == "" {
		dir = p.xdgConfig()
	}
	other := p.join(dir, c.where[s].instead)
	if file, err := c.Path(p, s); err != nil || file == other || !isFile(other) {
		return ""
	}
	return other
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (p Environment) dirOr(variable, belowHome string) string {
	if dir := p.getenv(variable); dir != "" {
		return p.makeAbsolute(dir)
	}
	return p.join(p.Home, belowHome)
}

func (p Environment) getenv(name string) string {
	if p.Getenv == nil || name == "" {
		return ""
	}
	return p.Getenv(name)
}

// join joins dir and a slash-separated path. It uses the separator of p.OS,
// which may differ from the separator of the current system.
func (p Environment) join(dir, path string) string {
	if p.OS == "windows" {
		return strings.TrimRight(dir, `\/`) + `\` + strings.ReplaceAll(path, "/", `\`)
	}
	return strings.TrimRight(dir, "/") + "/" + path
}

func (p Environment) makeAbsolute(dir string) string {
	if p.isAbs(dir) || p.Dir == "" {
		return dir
	}
	return p.join(p.Dir, dir)
}

func (p Environment) isAbs(dir string) bool {
	if p.OS != "windows" {
		return strings.HasPrefix(dir, "/")
	}
	return strings.HasPrefix(dir, `\\`) || len(dir) > 2 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/')
}
