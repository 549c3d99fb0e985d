package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// migrateOutput is the JSON output of the migrate command.
type migrateOutput struct {
	System string         `json:"system"`
	Source string         `json:"source"`
	Done   bool           `json:"done"` // false for a dry run, and if there is nothing to do
	Items  []migrate.Item `json:"items"`
	Notes  []string       `json:"notes"`
	Next   []string       `json:"next"` // commands for the user to run
}

type migrateFlags struct{ dryRun, yes, force, downgrade bool }

func (a *app) migrateCommand() *cobra.Command {
	var o migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate SYSTEM SOURCE",
		Short: "Migrate skills, MCP servers and conversations from another system",
		Long: fmt.Sprintf(`Migrate from another agent system: its skills, the MCP servers in its configuration
files, and its exported conversations. SOURCE is a directory, an archive or a
Git repository, as for loadout add: a checkout of the system, or a directory with your
files. For the system loadout, SOURCE contains conversations that you exported from chat
or from a hub on another machine, as JSON lines or Markdown.

The report lists what is kept, changed and lost. Without --yes, or an answer on a
terminal, nothing is written; --yes needs a terminal on standard input. A second run
changes nothing. Skills are installed as with loadout add, so their scripts and servers
are pending until you approve them. Other servers become your own: they start with your
privileges, outside the sandbox, and the report shows their commands and hosts. Secret
values are not migrated: a reference replaces each value, and the report lists the names
of the secrets that you have to set.

Systems: %s.`, systemNames()),
		Example: `  loadout migrate wegent ./Wegent --dry-run
  loadout migrate weknora https://github.com/Tencent/WeKnora.git
  loadout migrate loadout ./conversations --yes`,
		Args: argCount(2, 2, "a SYSTEM ("+systemNames()+") and a SOURCE"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return strings.Split(systemNames(), ", "), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "dry-run", "yes"); err != nil {
				return err
			}
			return a.migrate(cmd.Context(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "show the report without changing anything")
	f.BoolVar(&o.force, "force", false, "replace skills of the same name, even if you edited them")
	f.BoolVar(&o.downgrade, "downgrade", false, "also install signed versions older than those seen before")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func systemNames() string {
	var names []string
	for _, s := range migrate.Systems() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// migration holds the state of one migration.
type migration struct {
	app      *app
	flags    migrateFlags
	system   migrate.System
	source   string
	skills   *plan
	problems []catalog.Problem // problems of the source's skills
	dirs     map[string]string // directories of the source's skills, by the names to install
	runtime  *loadout.Runtime  // opened to import conversations
	change   *migrate.Change
	hubDocs  []migrate.ResourceFile
	out      migrateOutput
}

func (a *app) migrate(ctx context.Context, system, source string, o migrateFlags) error {
	m := &migration{app: a, flags: o, system: migrate.System(system), source: source}
	if !slices.Contains(migrate.Systems(), m.system) {
		return exit.Errorf(exit.Usage, "known systems: "+systemNames(), "unknown system %q", system)
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	defer m.close()
	m.setOutput()
	empty := len(m.skills.Changes()) == 0 && m.change.IsEmpty()
	if !a.JSON {
		m.print()
	}
	if empty || m.isDryRun() {
		return m.end(empty)
	}
	presence, err := m.confirm(ctx)
	if err != nil {
		return err
	}
	if err := m.apply(ctx, presence); err != nil {
		return err
	}
	m.out.Done = true
	m.addNext()
	return m.end(false)
}

// prepare reads the source and compares it with the user's setup.
func (m *migration) prepare(ctx context.Context) error {
	a := m.app
	to, err := a.InstallTarget(setup.InstallFlags{})
	if err != nil {
		return err
	}
	config, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	target, err := m.target(ctx, config)
	if err != nil {
		return err
	}
	at, err := setup.ParseLocation(m.source)
	if err != nil {
		return err
	}
	if m.skills, err = a.newPlan(to, a.NewFetcher(config), planOptions{verb: "add", force: m.flags.force, downgrade: m.flags.downgrade, dryRun: m.isDryRun()}); err != nil {
		return err
	}
	if err := m.read(ctx, at, target); err != nil {
		m.skills.Close()
		return err
	}
	return nil
}

// target describes the user's setup, which the migration extends.
func (m *migration) target(ctx context.Context, c *config.Config) (migrate.Target, error) {
	a := m.app
	t := migrate.Target{ServersFile: a.ServersFile(), Chats: migrate.ChatDir(filepath.Join(a.StateDir(), "sessions"))}
	if t.ServersFile == "" || a.StateDir() == "" {
		return t, exit.Errorf(exit.Failure, "set HOME, or XDG_CONFIG_HOME and LOADOUT_STATE", "no directory for servers and conversations")
	}
	t.OpenSession = func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
		if m.runtime == nil { // after the skills are installed
			rt, err := a.NewRuntime(ctx, c, false)
			if err != nil {
				return nil, err
			}
			m.runtime = rt
		}
		return m.runtime.NewSession(ctx, &session.Options{Log: log, ID: id, RetentionTurns: c.Skills.Keep, Budget: c.Skills.Budget})
	}
	t.HasSkill, t.IsInstalled, t.CreateSkill = m.hasSkill(ctx, c), m.isInstalled, m.createSkill
	t.SkillName = func(name string) string {
		own, _ := migrate.FindSkill(m.runtime.Catalog().Snapshot(), name)
		return own
	}
	store, err := a.SecretStore()
	t.Secrets = store
	return t, err
}

// hasSkill returns a function that reports whether a skill is available to the
// user or will be installed from the source.
func (m *migration) hasSkill(ctx context.Context, c *config.Config) func(name string) bool {
	available := sync.OnceValue(func() *catalog.Snapshot {
		rt, err := m.app.NewRuntime(ctx, c, false)
		if err != nil {
			return nil
		}
		defer rt.Close()
		return rt.Catalog().Snapshot()
	})
	return func(name string) bool {
		if m.installs(name) {
			return true
		}
		all := available()
		if all == nil {
			return false
		}
		_, ok := migrate.FindSkill(all, name)
		return ok
	}
}

// installs reports whether the source has a skill with this name that can be
// installed.
func (m *migration) installs(name string) bool {
	return slices.ContainsFunc(m.skills.Steps, func(st *install.Step) bool { return skillname.Slug(st.Name) == skillname.Slug(name) })
}

// isInstalled reports whether a converted skill is in the user's skills
// directory.
func (m *migration) isInstalled(_ context.Context, d skill.Draft) (bool, error) {
	if m.installs(d.Name) {
		return false, migrate.ErrNameTaken
	}
	has, err := m.skills.to.Has(d.Name)
	if err != nil || !has {
		return false, err
	}
	file, err := os.ReadFile(filepath.Join(m.skills.to.Path(), d.Name, skill.FileName))
	if err != nil || !bytes.Equal(file, d.Render()) {
		return false, migrate.ErrNameTaken
	}
	return true, nil
}

// createSkill creates a converted skill in the user's skills directory.
func (m *migration) createSkill(ctx context.Context, d skill.Draft) error {
	in := m.skills.to.Path()
	if err := writeSkillDir(in, filepath.Join(in, d.Name), d.Render()); err != nil {
		return err
	}
	m.app.RecordListed(ctx, in, []string{d.Name}) // migrate refuses to write if an agent runs it
	return nil
}

// isDryRun reports whether the command only shows the report: either --dry-run
// is set, or --yes is not set and the command cannot ask the user.
func (m *migration) isDryRun() bool {
	return m.flags.dryRun || !m.flags.yes && (m.app.JSON || !m.app.IsAttended())
}

// confirm asks the user to confirm. It returns the evidence that the user is
// present.
func (m *migration) confirm(ctx context.Context) (presence string, err error) {
	args := []string{"migrate", string(m.system), m.source}
	if presence, err = m.app.RequireUser(ctx, "", args...); err != nil {
		return "", err
	}
	yes, err := m.app.ConfirmUser(ctx, setup.Confirmation{Question: "Migrate?", Show: m.print, Args: args, Ask: true, Yes: m.flags.yes})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "to see the report again, add --dry-run", "Cancelled. Nothing was changed.")
	}
	return presence, err
}

// apply installs the skills, and then adds the servers and conversations.
func (m *migration) apply(ctx context.Context, presence string) error {
	if err := m.skills.to.Recover(ctx); err != nil {
		return err
	}
	if err := m.app.applyPlan(ctx, m.skills, planOptions{yes: true, verb: "add"}); err != nil {
		return err
	}
	err := m.explain(m.change.Apply(ctx))
	m.out.Notes = append(m.out.Notes, m.change.Problems...)
	written := func(k migrate.Kind) string { return strings.Join(m.change.Written(k), " ") }
	recorded := m.app.Record(context.WithoutCancel(ctx), policy.Record{Action: "migrate", Name: string(m.system),
		Details: map[string]string{"source": m.out.Source, "skills": written(migrate.Skill), "servers": written(migrate.Server), "conversations": written(migrate.Conversation), "presence": presence}})
	if err == nil {
		return recorded
	}
	return errors.Join(err, recorded)
}

// addNext adds commands with which the user can inspect or use what was
// migrated.
func (m *migration) addNext() {
	if len(m.change.Written(migrate.Server)) > 0 {
		m.out.Next = append(m.out.Next, "loadout servers")
	}
	const most = 3 // conversations; the report names the others
	all := m.change.Written(migrate.Conversation)
	for _, id := range all[:min(len(all), most)] {
		m.out.Next = append(m.out.Next, "loadout chat --session "+id)
	}
}

// close closes everything that the migration opened.
func (m *migration) close() {
	m.skills.Close()
	if m.runtime != nil {
		m.runtime.Close()
	}
}

// explain adds the next step to an error about the servers file.
func (m *migration) explain(err error) error {
	if e, ok := errors.AsType[*clientimport.Error](err); ok && e.Part == clientimport.ServersFile {
		return exit.Errorf(exit.Failure, "fix the file, or move it away, and try again", "%w", err)
	}
	return err
}

// setOutput sets the JSON output according to the plans.
func (m *migration) setOutput() {
	o := &m.out
	o.System, o.Items, o.Notes, o.Next = string(m.system), []migrate.Item{}, append([]string{}, m.change.Notes...), []string{}
	for _, st := range m.skills.Steps {
		item := migrate.Item{Kind: migrate.Skill, Name: st.Name, From: m.dirs[st.Name], Outcome: migrate.Kept, New: st.State != install.StateUnchanged}
		if st.State == install.StateReplaced {
			item.Outcome, item.Details = migrate.Changed, []string{replaces}
		}
		o.Items = append(o.Items, item)
	}
	for _, p := range append(m.problems, m.app.planProblems(m.skills)...) {
		if p.Severity != skill.Error {
			continue
		}
		o.Items = append(o.Items, migrate.Item{Kind: migrate.Skill, Name: p.Path, From: p.Path, Outcome: migrate.Lost, Details: []string{terminal.Clip(p.Message, 200)}})
	}
	o.Items = append(o.Items, m.change.Items...)
	for _, name := range m.change.Unset {
		o.Next = append(o.Next, "loadout secret set "+name)
	}
	for _, file := range m.hubFiles() {
		o.Next = append(o.Next, "loadout apply -f "+console.ShellQuote(file)+" --dry-run")
	}
}

// hubFiles returns the paths of the first files with documents for a hub, if the
// source is a directory. It skips paths that cannot be printed unchanged.
func (m *migration) hubFiles() []string {
	const most = 3 // the report names the others
	var out []string
	if fi, err := os.Stat(m.source); err != nil || !fi.IsDir() {
		return nil
	}
	for _, f := range m.hubDocs {
		file := filepath.Join(m.source, filepath.FromSlash(f.From))
		if printable.IsLabel(file) && len(out) < most {
			out = append(out, file)
		}
	}
	return out
}

// read reads the skills and the other files at a location.
func (m *migration) read(ctx context.Context, at remote.Location, target migrate.Target) error {
	m.out.Source = at.String()
	offer, err := m.skills.Open(ctx, at)
	if refused, ok := errors.AsType[*skill.RefusedError](err); ok && at.Kind == remote.Local && refused.Refusals[0].Code == "not-an-archive" {
		return exit.Errorf(exit.Usage, "give the directory that contains it", "%s is neither a directory nor an archive", m.source)
	}
	if err != nil {
		return m.app.suggestLocalFolder("loadout migrate "+string(m.system), m.source, at, m.skills.to, err)
	}
	if offer.Files() == nil {
		return exit.Errorf(exit.Usage, "give a directory, an archive or a Git repository", "%s is a skill index, which contains no other files", m.source)
	}
	offer.Problems = slices.DeleteFunc(offer.Problems, func(p catalog.Problem) bool { return migrate.IsPage(offer.Files(), p) })
	m.problems, m.dirs = offer.Problems, map[string]string{}
	for _, s := range offer.Skills {
		m.dirs[install.Name(at, s)] = s.Dir
	}
	m.skills.AddUnusable(offer)
	if err := m.skills.Add(ctx, offer, offer.Skills); err != nil {
		return err
	}
	found, err := migrate.Read(ctx, m.system, offer.Files())
	if err != nil {
		return err
	}
	m.hubDocs = found.Resources
	m.change, err = found.Compare(ctx, target)
	return m.explain(err)
}
