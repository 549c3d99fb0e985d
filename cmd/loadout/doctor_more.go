package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/upstream"
)

// doctorServers is what is known of the person's MCP servers without connecting
// them.
type doctorServers struct {
	Files         []doctorFile   `json:"files"` // with servers that count
	Count         int            `json:"count"`
	NotConfigured []doctorServer `json:"not_configured"`
	Problems      []string       `json:"problems"`
}

type doctorFile struct {
	Path    string `json:"path"`
	Servers int    `json:"servers"`
}

type doctorServer struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Problem string `json:"problem"` // which variable has no value, and what to do
}

type doctorProfiles struct {
	Profiles []doctorProfile `json:"profiles"`
	Problems []string        `json:"problems"` // of files
}

type doctorProfile struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Problems []string `json:"problems"`
}

type doctorSecrets struct {
	Count   int    `json:"count"`
	Problem string `json:"problem"` // why they cannot be read, "" where they can
}

func (a *app) examineServers(c *config.Config) (doctorServers, []*upstream.Config) {
	out := doctorServers{Files: []doctorFile{}, NotConfigured: []doctorServer{}, Problems: []string{}}
	all, findings, err := a.servers(c, nil)
	if err != nil {
		findings = append(findings, err.Error())
	}
	out.Count, out.Problems = len(all), append(out.Problems, findings...)
	for _, s := range all {
		i := slices.IndexFunc(out.Files, func(f doctorFile) bool { return f.Path == s.File })
		if i < 0 {
			i = len(out.Files)
			out.Files = append(out.Files, doctorFile{Path: s.File})
		}
		out.Files[i].Servers++
		if s.Disabled {
			continue
		}
		v := a.variables(c)
		if s.Owner != "" { // of a project that is trusted, which is not the person
			v = upstream.Variables{User: v.User, Workspace: v.Workspace}
		}
		if _, unset := s.Resolve(v); len(unset) > 0 {
			var texts []string
			for _, u := range unset {
				texts = append(texts, u.String())
			}
			out.NotConfigured = append(out.NotConfigured, doctorServer{s.Name, s.File, strings.Join(texts, "; ")})
		}
	}
	return out, all
}

// examineProfiles looks whether what profiles name is there. rt has all skills.
func (a *app) examineProfiles(rt *loadout.Runtime, own []*upstream.Config) doctorProfiles {
	out := doctorProfiles{Profiles: []doctorProfile{}, Problems: []string{}}
	all, err := a.ghostsNoting(func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) })
	if err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	for _, p := range all {
		d := doctorProfile{Name: p.Name, File: p.File, Problems: append(append([]string{}, absentSkills(p, rt)...), absentServers(p, own)...)}
		_, problems := profileRules(p)
		for _, wrong := range problems {
			d.Problems = append(d.Problems, fmt.Sprintf("policy: %s; until it is mended no tool is called", wrong))
		}
		out.Profiles = append(out.Profiles, d)
	}
	return out
}

func (a *app) examineSecrets() doctorSecrets {
	store, err := a.secretStore()
	if err != nil {
		return doctorSecrets{Problem: err.Error()}
	}
	list, err := store.List()
	if err != nil {
		return doctorSecrets{Problem: err.Error()}
	}
	return doctorSecrets{Count: len(list)}
}

// doctorInstalled is a directory that loadout add put skills into.
type doctorInstalled struct {
	Path    string  `json:"path"`
	Skills  int     `json:"skills"`
	Newer   []newer `json:"newer"`   // as of the last loadout update --check
	Problem string  `json:"problem"` // of loadout.lock, "" where it can be read
}

func (a *app) examineInstalled() []doctorInstalled {
	out := []doctorInstalled{}
	all, err := a.places(installFlags{})
	if err != nil {
		return out
	}
	known := a.newerSkills()
	for _, p := range all {
		d := doctorInstalled{Path: p.Path(), Newer: []newer{}}
		lock, err := p.Lock()
		switch {
		case err != nil:
			d.Problem = err.Error()
		case len(lock.Skills) == 0:
			continue
		default:
			d.Skills = len(lock.Skills)
		}
		for _, n := range known {
			if n.Directory == p.Path() {
				d.Newer = append(d.Newer, n)
			}
		}
		out = append(out, d)
	}
	return out
}

func (a *app) printInstalled(b *strings.Builder, all []doctorInstalled) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", a.bold("Skills that loadout add brought"))
	for _, d := range all {
		if d.Problem != "" {
			a.wrap(b, "  ", plain(d.Path)+": "+d.Problem, same)
			continue
		}
		fmt.Fprintf(b, "  %s: %s. Are they as they were? loadout verify\n", plain(d.Path), counted(d.Skills, "skill"))
		for _, n := range d.Newer {
			fmt.Fprintf(b, "    %s: newer on %s: %s\n", a.bold(plain(n.Name)), n.Checked.Local().Format("2006-01-02"), plain(n.Reason))
		}
	}
}

// printMore prints what is said of servers, profiles and secrets.
func (a *app) printMore(b *strings.Builder, d doctorOutput) {
	head := func(title string, n int) { fmt.Fprintf(b, "\n%s: %d\n", a.bold(title), n) }
	head("MCP servers", d.Servers.Count)
	for _, f := range d.Servers.Files {
		fmt.Fprintf(b, "  %s: %s\n", plain(f.Path), counted(f.Servers, "server"))
	}
	for _, s := range d.Servers.NotConfigured {
		a.wrap(b, "  ", fmt.Sprintf("%s is not configured: %s", s.Name, s.Problem), same)
	}
	for _, p := range d.Servers.Problems {
		a.wrap(b, "  ", p, same)
	}
	if d.Servers.Count > 0 {
		fmt.Fprintf(b, "  Whether they work: loadout servers%s\n", a.flags())
	}
	head("Profiles", len(d.Profiles.Profiles))
	for _, p := range d.Profiles.Profiles {
		fmt.Fprintf(b, "  %s  %s\n", a.bold(plain(p.Name)), plain(p.File))
		for _, wrong := range p.Problems {
			a.wrap(b, "      ", wrong, same)
		}
	}
	for _, p := range d.Profiles.Problems {
		a.wrap(b, "  ", p, same)
	}
	a.printInstalled(b, d.Installed)
	if d.Secrets.Problem != "" {
		fmt.Fprintf(b, "\n%s\n", a.bold("Secrets"))
		a.wrap(b, "  ", a.red("cannot be read")+": "+d.Secrets.Problem, same)
		return
	}
	head("Secrets", d.Secrets.Count)
}
