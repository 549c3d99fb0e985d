package clientconfig

import (
	"fmt"
	"os"
	"strings"
)

// Place is where configuration files are looked for. It stands in for the
// process's surroundings, so that this package reads none of them.
type Place struct {
	// OS is a GOOS value. What is neither "windows" nor "darwin" is taken for
	// a system with XDG directories.
	OS string
	// Home is the person's home directory.
	Home string
	// Dir is the project's root, absolute. It is taken as given: nothing above
	// it is searched.
	Dir string
	// Getenv returns the value of a variable, as os.Getenv does; nil means
	// that none is set. Asked for are APPDATA, LOCALAPPDATA, XDG_CONFIG_HOME,
	// CLAUDE_CONFIG_DIR, CODEX_HOME and GEMINI_CLI_HOME. A relative
	// XDG_CONFIG_HOME is ignored, as its specification demands; the others are
	// taken relative to Dir.
	Getenv func(string) string
}

// location says where a client's file is for one scope. The first that is set
// counts, top down; paths are written with slashes.
type location struct {
	project    string // below Place.Dir
	env, inEnv string // below the directory a variable names, when it is set
	packaged   string // below %LOCALAPPDATA%, on Windows, when that directory exists
	home       string // below Place.Home
	appData    string // below the system's directory for application settings
	note       string // what the person should know about this file
}

// Path returns the file in which c keeps its servers for scope s, "" meaning
// its default scope. The file need not exist.
//
// It fails with an [ErrUnsupported] for a scope the client has not, and when p
// lacks the directory needed. It does no I/O, but for Claude Desktop on
// Windows, where it looks which of two installations there is.
func (c Client) Path(p Place, s Scope) (string, error) {
	s, err := c.scope(s)
	if err != nil {
		return "", err
	}
	l := c.where[s]
	if l.project != "" {
		if p.Dir == "" {
			return "", fmt.Errorf("the project directory is not known; name the configuration file of %s yourself", c.Title)
		}
		return p.join(p.Dir, l.project), nil
	}
	if dir := p.getenv(l.env); dir != "" {
		return p.join(p.absolute(dir), l.inEnv), nil
	}
	if p.Home == "" {
		return "", fmt.Errorf("the home directory is not known; set HOME, or name the configuration file of %s yourself", c.Title)
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

// appData is the directory that Electron calls appData.
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

// join puts path, written with slashes, below dir with the separator of p.OS,
// which need not be the system this runs on.
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
