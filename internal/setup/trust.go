package setup

import (
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/trust"
)

// TrustStore returns the store of trusted projects. It is nil if there is no state
// directory, and in managed mode, where the user cannot trust projects.
func (s *Setup) TrustStore() *trust.Store {
	if d := s.StateDir(); d != "" && !s.IsManaged() {
		return trust.NewStore(filepath.Join(d, "trust"))
	}
	return nil
}

// ReadProject reads the configuration of a directory and checks whether the
// user trusts it. It can return both a project and an error: see [trust.Read].
func (s *Setup) ReadProject(dir string) (*trust.Project, error) {
	return trust.Read(dir, s.TrustStore())
}

// isCovered reports whether the project that contains the working directory is
// trusted, and whether file, with this content, is part of its trusted
// configuration.
func (s *Setup) isCovered(file string, data []byte) bool {
	own, _ := config.ProjectFile(s.ConfigInput().WorkDir)
	if own == "" {
		return false
	}
	p, err := s.ReadProject(config.ProjectDir(own))
	return err == nil && p.Trusted && p.Covers(file, data)
}

// isTrustedFile reports whether a project's configuration file with this
// content is trusted.
func (s *Setup) isTrustedFile(file string, data []byte) bool {
	dir := config.ProjectDir(file)
	p, err := s.ReadProject(dir)
	if err != nil {
		s.Note("cannot check whether %s is trusted, so it is not: %v", dir, err)
		return false
	}
	if p.Changed {
		s.Note("%s changed since it was trusted; review it, then trust it again: loadout trust %s", dir, console.ShellQuote(dir))
	}
	return p.Trusted && p.Covers(file, data)
}

// projectPaths returns the configuration file of the project that contains dir, and the
// files on which the project's trust depends: its record, and the project's list of
// servers, whose change ends the trust.
func (s *Setup) projectPaths(dir string) []string {
	own, _ := config.ProjectFile(dir)
	store := s.TrustStore()
	switch {
	case own == "":
		return nil
	case store == nil:
		return []string{own}
	}
	project := config.ProjectDir(own)
	out := []string{own, filepath.Join(project, ".mcp.json")}
	if record := store.Path(project); record != "" {
		out = append(out, record)
	}
	return out
}

// TrustUser returns the user's own configuration, to compare with a project's.
// It does not report problems.
func (s *Setup) TrustUser() trust.User {
	user := trust.User{Config: s.ConfigInput(), Servers: func(c *config.Config) map[string]string {
		mine := *c
		mine.Servers.Project = nil
		own, _, _ := s.ReadServers(&mine, nil)
		out := map[string]string{}
		for _, server := range own {
			out[server.Name] = server.File
		}
		return out
	}}
	own, _ := s.loadOwnProfiles(func(string, ...any) {})
	for _, g := range own {
		user.Profiles = append(user.Profiles, g.Name)
	}
	return user
}

// newProjectServers reads the project that contains the working directory. It
// must be called before the configuration is loaded.
func (s *Setup) newProjectServers() *trust.Servers {
	return trust.NewServers(s.ConfigInput().WorkDir, s.TrustStore(), func(dir string) string {
		return "trust it with `loadout trust " + console.ShellQuote(dir) + "`"
	})
}
