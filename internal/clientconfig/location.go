package clientconfig

import (
	"fmt"
	"os"
	"strings"
)

// Place describes the environment in which configuration files are located. It replaces
// the process environment, which this package does not read.
type Place struct {
	// OS is a GOOS value. Any value except "windows" and "darwin" means XDG directories.
	OS string
	// Home is the user's home directory.
	Home string
	// Dir is the absolute root of the project. Parents are not searched.
	Dir string
	// Getenv returns environment variables, like os.Getenv; nil means none. It is called
	// for APPDATA, LOCALAPPDATA, XDG_CONFIG_HOME, CLAUDE_CONFIG_DIR, CODEX_HOME and
	// GEMINI_CLI_HOME. A relative XDG_CONFIG_HOME is ignored, as its specification
	// requires; the others are relative to Dir.
	Getenv func(string) string
}

// location describes the path of a client's file for one scope. The first set field
// counts. Paths use slashes.
type location struct {
	project    string // below Place.Dir
	env, inEnv string // below the directory in a variable, if that is set
	packaged   string // below %LOCALAPPDATA% on Windows, if that directory exists
	home       string // below Place.Home
	appData    string // below the system's directory for application settings
	note       string // note about this file for the user
}

// Path returns the file in which c stores its servers for scope s; "" means its default
// scope. The file need not exist.
//
// It fails with [ErrUnsupported] for an unsupported scope, and if p lacks a required
// directory. It does no I/O, except for Claude Desktop on Windows, where it checks which
// kind of installation exists.
func (c Client) Path(p Place, s Scope) (string, error) {
	s, err := c.scope(s)
	if err != nil {
		return "", err
	}
	l := c.where[s]
	if l.project != "" {
		if p.Dir == "" {
			return "", fmt.Errorf("unknown project directory; name the configuration file of %s", c.Title)
		}
		return p.join(p.Dir, l.project), nil
	}
	if dir := p.getenv(l.env); dir != "" {
		return p.join(p.absolute(dir), l.inEnv), nil
	}
	if p.Home == "" {
		return "", fmt.Errorf("unknown home directory; set HOME, or name the configuration file of %s", c.Title)
	}
	if l.packaged != "" && p.OS == "windows" {
		file := p.join(p.dirOr("LOCALAPPDATA", "AppData/Local"), l.packaged)
		if info, err := os.Stat(file[:strings.LastIndexByte(file, '\\')]); err == nil && info.IsDir() {
			return file, nil
		}
	}
	if l.home != "" {
		return p.join(p.Home, l.home), nil
	}
	return p.join(p.appData(), l.appData), nil
}

// appData returns the directory that Electron calls appData.
func (p Place) appData() string {
	switch p.OS {
	case "windows":
		return p.dirOr("APPDATA", "AppData/Roaming")
	case "darwin":
		return p.join(p.Home, "Library/Application Support")
	}
	if dir := p.getenv("XDG_CONFIG_HOME"); p.isAbs(dir) {
		return dir
	}
	return p.join(p.Home, ".config")
}

func (p Place) dirOr(variable, belowHome string) string {
	if dir := p.getenv(variable); dir != "" {
		return p.absolute(dir)
	}
	return p.join(p.Home, belowHome)
}

func (p Place) getenv(name string) string {
	if p.Getenv == nil || name == "" {
		return ""
	}
	return p.Getenv(name)
}

// join joins dir and path, which uses slashes, with the separator of p.OS, which may
// differ from this system's.
func (p Place) join(dir, path string) string {
	if p.OS == "windows" {
		return strings.TrimRight(dir, `\/`) + `\` + strings.ReplaceAll(path, "/", `\`)
	}
	return strings.TrimRight(dir, "/") + "/" + path
}

func (p Place) absolute(dir string) string {
	if p.isAbs(dir) || p.Dir == "" {
		return dir
	}
	return p.join(p.Dir, dir)
}

func (p Place) isAbs(dir string) bool {
	if p.OS != "windows" {
		return strings.HasPrefix(dir, "/")
	}
	return strings.HasPrefix(dir, `\\`) || len(dir) > 2 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/')
}
