// Package setup opens the user's resources on this machine for the commands:
// directories, configuration, skills, MCP servers, models, profiles and
// approvals.
//
// It reports problems as notes on the console. Other packages read and validate
// the files. Its errors have exit codes and name the flag or the command that
// helps. Start reading at [Setup].
package setup

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/operator"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/usage"
)

// Setup provides access to the user's files and settings. Its methods read the
// environment and files when called.
type Setup struct {
	console.Console
	Skills      []string // --skills; nil means the configured skills
	ConfigFile  string   // --config
	ServerFiles []string // --mcp-config, whose servers may publish skills
	ByClient    bool     // whether a client's configuration, which the user wrote, starts the program
	ProfileName string   // --profile
	Verbose     bool     // --verbose
	// DetectCaller determines who runs this command. nil inspects the
	// environment, the parent processes and the terminal. Only tests set it.
	DetectCaller func() presence.Caller
	// Operator is the administrator's configuration file. Only tests set it.
	Operator operator.File
	// MoreSources are sources of skills besides those of the configuration. Only
	// tests set it.
	MoreSources []catalog.Source
	// ShowPending makes skills available even if they would replace others and are
	// not confirmed. Set it only to review and approve them.
	ShowPending bool
	// SkillWait is the maximum wait for slow skill directories, as in
	// [loadout.Options]; 0 means no limit.
	SkillWait time.Duration
	// Backends, if set, makes the sandboxes of this program keep a spare process
	// for the next script. Only programs that run many scripts set it.
	Backends *Backends
	// UsageLog, if set, is used instead of writing each use to the usage log at
	// once. Programs that serve many calls set it to the result of NewUsageLog.
	UsageLog *usage.Log

	answered []string // arguments of the command that RequireUser accepted
	roots    *Roots   // the roots of the client that this program serves; may be nil
}

// SkillArgs returns the flags that select the skills, as arguments.
func (s *Setup) SkillArgs() []string {
	var out []string
	for _, d := range s.Skills {
		out = append(out, "--skills", d)
	}
	if s.ConfigFile != "" {
		out = append(out, "--config", s.ConfigFile)
	}
	return out
}

// SkillArgsIn is like SkillArgs for a command that the user runs in dir, which may
// be "" for the working directory. It makes the path of the configuration file
// absolute, because the command would resolve a relative path in dir.
func (s *Setup) SkillArgsIn(dir string) []string {
	in := *s
	if dir != "" && s.ConfigFile != "" {
		if path, err := filepath.Abs(s.ConfigFile); err == nil {
			in.ConfigFile = path
		}
	}
	return in.SkillArgs()
}

// SkillFlags returns the flags that select the skills, for use in a hint.
func (s *Setup) SkillFlags() string { return quoteArgs(s.SkillArgs()) }

// quoteArgs quotes arguments for a shell command line and puts a space before
// each.
func quoteArgs(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" " + console.ShellQuote(a))
	}
	return b.String()
}

// ProfileFlags is like SkillFlags but includes the profile, for commands that
// accept both.
func (s *Setup) ProfileFlags() string {
	if s.ProfileName == "" {
		return s.SkillFlags()
	}
	return " --profile " + console.ShellQuote(s.ProfileName) + s.SkillFlags()
}

// LoadConfig loads the configuration. flags maps configuration keys to the
// values of flags.
func (s *Setup) LoadConfig(flags map[string]string) (*config.Config, error) {
	in := s.ConfigInput()
	in.Flags = flags
	if in.File != "" {
		if _, err := os.Stat(in.File); errors.Is(err, fs.ErrNotExist) {
			return nil, exit.Errorf(exit.NotFound, "check the path given with --config", "%s: %w", in.File, fileerror.Cause(err))
		}
	}
	c, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Notes {
		s.Note("%s: %s", n.Where, n.Message)
	}
	return c, nil
}

// ConfigInput returns the input for loading the configuration.
func (s *Setup) ConfigInput() config.Input {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	in := config.Input{WorkDir: dir, Home: s.Home(), Getenv: s.Getenv, File: s.ConfigFile, Trusted: s.isTrustedFile, Operator: &s.Operator}
	if !s.ByClient {
		in.Agent = func() string { return s.Caller().Agent }
	}
	return in
}

// Home returns the user's home directory, or "" if there is none.
func (s *Setup) Home() string {
	if h := s.Getenv("HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}

// CacheDir returns the cache directory, or "" if there is none.
func (s *Setup) CacheDir() string { return s.baseDir("LOADOUT_CACHE", "XDG_CACHE_HOME", ".cache") }

// StateDir returns the directory for the user's decisions and other state, or
// "" if there is none.
func (s *Setup) StateDir() string {
	return s.baseDir("LOADOUT_STATE", "XDG_STATE_HOME", ".local/state")
}

// DataDir returns the directory for files created by agents, or "" if there is
// none.
func (s *Setup) DataDir() string { return s.baseDir("", "XDG_DATA_HOME", ".local/share") }

// baseDir returns the value of the variable own, if it is set. Otherwise, it returns
// the subdirectory loadout of the directory in the variable xdg or, if that is not
// absolute, of the path inHome in the home directory.
func (s *Setup) baseDir(own, xdg, inHome string) string {
	if own != "" && s.Getenv(own) != "" {
		return s.Getenv(own)
	}
	if d := s.Getenv(xdg); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := s.Home(); h != "" {
		return filepath.Join(h, inHome, "loadout")
	}
	return ""
}

// Logger returns the logger that --verbose enables, or nil.
func (s *Setup) Logger() *slog.Logger {
	if !s.Verbose {
		return nil
	}
	return slog.New(untrusted.LogHandler(slog.NewTextHandler(s.Stderr, nil)))
}

// Version describes this build of loadout.
type Version struct {
	Version  string    `json:"version"` // the tag of the commit, a version before the next tag, or "devel"
	Revision string    `json:"revision,omitempty"`
	Date     time.Time `json:"date,omitzero"` // when the commit was made
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
}

// ReadVersion returns the version recorded in this program's build information.
func ReadVersion() Version {
	v := Version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		v.Version = bi.Main.Version
	}
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v.Revision = s.Value[:12]
		case s.Key == "vcs.time":
			v.Date, _ = time.Parse(time.RFC3339, s.Value) // the zero Time if invalid
		}
	}
	return v
}
