package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/doctor"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/upstream"
)

type doctorProfiles struct {
	Profiles []doctorProfile `json:"profiles"`
	Problems []string        `json:"problems"` // problems in the profile files
}

type doctorProfile struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Problems []string `json:"problems"`
}

func (a *app) inspectServers(c *config.Config) (doctor.Servers, []*upstream.Config) {
	all, findings, err := a.ReadServers(c, nil)
	if err != nil {
		findings = append(findings, err.Error())
	}
	return doctor.CheckServers(all, findings, a.ServerVariables(c)), all
}

// inspectProfiles reports skills and servers that profiles name but that do not
// exist. rt must have all skills.
func (a *app) inspectProfiles(rt *loadout.Runtime, own []*upstream.Config) doctorProfiles {
	out := doctorProfiles{Profiles: []doctorProfile{}, Problems: []string{}}
	all, err := a.LoadProfiles(func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) })
	if err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	for _, p := range all {
		d := doctorProfile{Name: p.Name, File: p.File, Problems: append(append([]string{}, setup.MissingSkills(p, rt)...), setup.MissingServers(p, own)...)}
		_, problems := setup.ParseProfileRules(p, false)
		for _, wrong := range problems {
			d.Problems = append(d.Problems, fmt.Sprintf("policy: %s; no tool can be called until this is fixed", wrong))
		}
		out.Profiles = append(out.Profiles, d)
	}
	return out
}

func (a *app) inspectSecrets() doctor.Secrets {
	store, err := a.SecretStore()
	if err != nil {
		return doctor.Secrets{Problem: err.Error()}
	}
	return doctor.CheckSecrets(store)
}

// doctorInstalled describes a directory with skills installed by loadout add.
type doctorInstalled struct {
	Path    string            `json:"path"`
	Skills  int               `json:"skills"`
	Newer   []availableUpdate `json:"newer"`   // newer versions as of the last loadout update --check
	Problem string            `json:"problem"` // problem with loadout.lock; "" if it is readable
	// Signatures lists limits of signatures, such as expired keys.
	Signatures []install.Warning `json:"signatures"`
}

func (a *app) inspectInstalled() []doctorInstalled {
	out := []doctorInstalled{}
	all, err := a.InstallDirs(setup.InstallFlags{})
	if err != nil {
		return out
	}
	known := a.availableUpdates()
	for _, p := range all {
		d := doctorInstalled{Path: p.Path(), Newer: []availableUpdate{}, Signatures: []install.Warning{}}
		lock, err := p.Lockfile()
		switch {
		case err != nil:
			d.Problem = err.Error()
		case len(lock.Skills) == 0:
			continue
		default:
			d.Skills = len(lock.Skills)
			d.Signatures = install.Warnings(lock, a.PublisherKeys())
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
	fmt.Fprintf(b, "\n%s\n", a.Bold("Installed skills"))
	for _, d := range all {
		if d.Problem != "" {
			a.WriteWrapped(b, "  ", plain(d.Path)+": "+d.Problem, console.NoStyle)
			continue
		}
		fmt.Fprintf(b, "  %s: %s. To verify them: loadout verify\n", plain(d.Path), console.Pluralize(d.Skills, "skill"))
		for _, n := range d.Newer {
			fmt.Fprintf(b, "    %s: update found on %s: %s\n", a.Bold(plain(n.Name)), n.Checked.Local().Format("2006-01-02"), plain(n.Reason))
		}
		for _, w := range d.Signatures {
			a.WriteWrapped(b, "    ", plain(w.Name)+": "+plain(w.Text), console.NoStyle)
		}
	}
}

// printSetup prints the servers, profiles, installed skills and secrets.
func (a *app) printSetup(b *strings.Builder, d doctorOutput) {
	head := func(title string, n int) { fmt.Fprintf(b, "\n%s: %d\n", a.Bold(title), n) }
	head("MCP servers", d.Servers.Count)
	for _, f := range d.Servers.Files {
		fmt.Fprintf(b, "  %s: %s\n", plain(f.Path), console.Pluralize(f.Servers, "server"))
	}
	for _, s := range d.Servers.NotConfigured {
		a.WriteWrapped(b, "  ", fmt.Sprintf("%s is not configured: %s", s.Name, s.Problem), console.NoStyle)
	}
	for _, p := range d.Servers.Problems {
		a.WriteWrapped(b, "  ", p, console.NoStyle)
	}
	if d.Servers.Count > 0 {
		fmt.Fprintf(b, "  To test them: loadout servers%s\n", a.SkillFlags())
	}
	head("Profiles", len(d.Profiles.Profiles))
	for _, p := range d.Profiles.Profiles {
		fmt.Fprintf(b, "  %s  %s\n", a.Bold(plain(p.Name)), plain(p.File))
		for _, wrong := range p.Problems {
			a.WriteWrapped(b, "      ", wrong, console.NoStyle)
		}
	}
	for _, p := range d.Profiles.Problems {
		a.WriteWrapped(b, "  ", p, console.NoStyle)
	}
	a.printInstalled(b, d.Installed)
	if d.Secrets.Problem != "" {
		fmt.Fprintf(b, "\n%s\n", a.Bold("Secrets"))
		a.WriteWrapped(b, "  ", a.Red("cannot be read")+": "+d.Secrets.Problem, console.NoStyle)
		return
	}
	head("Secrets", d.Secrets.Count)
}
