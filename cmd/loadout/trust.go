package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
)

type trustFlags struct{ list, remove, dryRun, yes bool }

// trustOutput is trust --json.
type trustOutput struct {
	Dir     string               `json:"dir"`
	Digest  policy.Digest        `json:"digest"`
	Files   []policy.ProjectFile `json:"files"`
	State   string               `json:"state"`   // trusted, changed or untrusted, as it is afterwards
	Effects []string             `json:"effects"` // settings that come into force, as text
	Ignored []config.Note        `json:"ignored"` // what of the files does not count even so
	// Problems are rules that cannot be read: with them no tool could be called, so
	// that it is not recorded.
	Problems []string `json:"problems"`
}

type trustList struct {
	Projects []trustedDir     `json:"projects"`
	Problems []policy.Problem `json:"problems"`
}

type trustedDir struct {
	policy.Trust
	Changed bool `json:"changed,omitempty"` // it counts for nothing now
}

func (a *app) trustCommand() *cobra.Command {
	var o trustFlags
	cmd := &cobra.Command{
		Use:   "trust DIR",
		Short: "Let the configuration of a project count, as it is now",
		Long: `Show what the configuration of a project says and let it count from now on: its
loadout.yaml, .mcp.json and what is below .loadout, but not its skills, which are
approved one by one. When a byte of that changes, it has to be trusted again. Until
then a project may add skill directories inside itself and rules that deny, nothing
else. No project ever loosens the sandbox. On a terminal it asks first; where standard
input or standard error is none, and with --json, it acts at once, without --yes.`,
		Example: `  loadout trust . --dry-run                only show it
  loadout trust ~/src/project
  loadout trust --list
  loadout trust --remove ~/src/project`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return want(0, 0, "")(cmd, args)
			}
			return want(1, 1, "the DIR of a project")(cmd, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, pair := range [][2]string{{"list", "remove"}, {"list", "dry-run"}, {"remove", "dry-run"}} {
				if err := exclusive(cmd, pair[0], pair[1]); err != nil {
					return err
				}
			}
			switch {
			case o.list:
				return a.listTrust()
			case o.remove:
				return a.untrust(cmd.Context(), args[0])
			}
			return a.trust(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list the projects that are trusted")
	f.BoolVar(&o.remove, "remove", false, "trust it no more")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would count, and record nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal")
	return cmd
}

// projects are the directories that this person trusts, nil where there is no
// place to keep them.
func (a *app) projects() *policy.Projects {
	if d := a.stateDir(); d != "" {
		return policy.NewProjects(filepath.Join(d, "trust"))
	}
	return nil
}

// project is the configuration of a directory, as it was read once.
type project struct {
	dir     string
	digest  policy.Digest
	files   []policy.ProjectFile
	trusted bool
	known   bool // another state of it is trusted
}

// readProject reads the configuration of a directory, and whether the person
// trusts it. A store that cannot be read is an error, and no trust.
func (a *app) readProject(dir string) (*project, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := &project{dir: dir}
	if p.digest, p.files, err = policy.ProjectDigest(root); err != nil {
		return nil, err
	}
	store := a.projects()
	if store == nil {
		return p, nil
	}
	t, err := store.Find(dir)
	if errors.Is(err, policy.ErrNotTrusted) {
		return p, nil
	}
	p.known, p.trusted = err == nil, err == nil && t.Digest == p.digest
	return p, err
}

// covered reports whether a file that the configuration of the project around
// the working directory names counts with these bytes: the project is trusted,
// and they are of what is trusted.
func (a *app) covered(file string, data []byte) bool {
	own, _ := config.ProjectFile(a.configInput().WorkDir)
	if own == "" {
		return false
	}
	p, err := a.readProject(config.ProjectDir(own))
	return err == nil && p.trusted && a.coversFile(p, file, data)
}

// trustsFile reports whether a project's configuration file counts with these
// bytes.
func (a *app) trustsFile(file string, data []byte) bool {
	dir := config.ProjectDir(file)
	p, err := a.readProject(dir)
	if err != nil {
		a.note("whether %s is trusted cannot be said, so it is not: %v", dir, err)
		return false
	}
	if p.known && !p.trusted {
		a.note("%s changed since it was trusted; look at it, and trust it again: loadout trust %s", dir, quoted(dir))
	}
	return p.trusted && a.coversFile(p, file, data)
}

func (a *app) trust(ctx context.Context, dir string, o *trustFlags) error {
	p, err := a.readTrusting(dir)
	if err != nil {
		return err
	}
	if len(p.files) == 0 {
		return fail(exitNotFound, "nothing has to be trusted there; its skills are approved one by one: loadout approve NAME",
			"%s has no loadout.yaml, .mcp.json or .loadout", p.dir)
	}
	out := &trustOutput{Dir: p.dir, Digest: p.digest, Files: p.files, State: p.state(), Effects: []string{}, Ignored: []config.Note{}, Problems: []string{}}
	a.effects(p, out)
	if !a.json {
		a.printTrust(p, out)
	}
	if o.dryRun {
		if a.json {
			return a.printJSON(out)
		}
		return nil
	}
	if len(out.Problems) > 0 {
		if a.json {
			if err := a.printJSON(out); err != nil {
				return err
			}
		}
		return fail(exitFound, "mend it, and try again", "%s is not trusted: with this no tool could be called, yours neither: %s", p.dir, strings.Join(out.Problems, "; "))
	}
	if !o.yes && !a.json && isTerminal(a.stdin) && isTerminal(a.stderr) {
		fmt.Fprintln(a.stderr)
		yes, err := a.confirm(ctx, "Trust it?")
		if err != nil {
			return err
		}
		if !yes {
			return fail(exitRefused, "to see it again: loadout trust "+quoted(dir)+" --dry-run", "%s is not trusted", p.dir)
		}
	}
	store := a.projects()
	if store == nil {
		return fail(exitFound, "set LOADOUT_STATE to a directory that is yours", "there is no place to keep what is trusted")
	}
	if _, err := store.Trust(ctx, p.dir, p.digest, policy.Local()); err != nil {
		return err
	}
	if err := a.recordTrust(ctx, "trust", p.dir, p.digest); err != nil {
		return err
	}
	if out.State = "trusted"; a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.stdout, "\n%s It counts until a byte of it changes. To take it back: loadout trust --remove %s\n", a.green("Trusted."), quoted(p.dir))
	return nil
}

// readTrusting reads what a person is about to decide on. That an earlier
// decision cannot be read is for the store to say, when it is written.
func (a *app) readTrusting(dir string) (*project, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		code, hint := missing(err, "the path of the project")
		return nil, fail(code, hint, "%s: %w", dir, reason(err))
	case !info.IsDir():
		return nil, fail(exitUsage, "name the directory that it is in", "%s is no directory", dir)
	}
	p, err := a.readProject(dir)
	if err != nil && p == nil {
		return nil, fail(exitFound, "mend what is named, and try again", "%s: %w", dir, err)
	}
	return p, nil
}

func (p *project) state() string {
	switch {
	case p.trusted:
		return "trusted"
	case p.known:
		return "changed"
	}
	return "untrusted"
}

func (a *app) coversFile(p *project, file string, data []byte) bool {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return false
	}
	name, err := filepath.Rel(p.dir, filepath.Join(dir, filepath.Base(file)))
	return err == nil && policy.Covers(p.files, filepath.ToSlash(name), data)
}

func (a *app) printTrust(p *project, out *trustOutput) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s %s\n", a.bold(plain(p.dir)), a.faint("digest "), p.digest)
	for _, e := range out.Effects {
		fmt.Fprintf(&b, "%s %s\n", a.faint("counts "), plain(e))
	}
	for _, n := range out.Ignored {
		fmt.Fprintf(&b, "%s %s\n", a.faint("ignored"), plain(n.Where+": "+n.Message))
	}
	for _, text := range out.Problems {
		fmt.Fprintf(&b, "%s %s\n", a.red("wrong  "), plain(text))
	}
	for _, f := range p.files {
		fmt.Fprintf(&b, "\n%s %s\n", a.bold(plain(f.Path)), a.faint(sized(f.Size)))
		b.WriteString(a.excerpt(p, f))
	}
	fmt.Fprint(a.stdout, b.String())
}

// excerpt is the beginning of a file as it was read for its digest.
func (a *app) excerpt(p *project, f policy.ProjectFile) string {
	const most, lines = 64 << 10, 200
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(f.Path))
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.Size+1))
	if err != nil || !policy.Covers(p.files, f.Path, data) {
		return "  it changed while it was shown: do not trust it, and look again\n"
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "  it is no text\n"
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(string(data[:min(len(data), most)])) {
		if n++; n > lines {
			break
		}
		b.WriteString("  " + strings.TrimRight(safe(strings.ReplaceAll(line, "\t", "    ")), "\n") + "\n")
	}
	if n > lines || len(data) > most {
		b.WriteString("  … and more: read the file\n")
	}
	return b.String()
}

func (a *app) listTrust() error {
	out := trustList{[]trustedDir{}, []policy.Problem{}}
	if store := a.projects(); store != nil {
		list, problems, err := store.List()
		if err != nil {
			return err
		}
		out.Problems = append(out.Problems, problems...)
		for _, t := range list {
			p, err := a.readProject(t.Dir)
			out.Projects = append(out.Projects, trustedDir{t, err != nil || !p.trusted})
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, p := range out.Problems {
		a.note("what cannot be read is not trusted: %s", p)
	}
	if len(out.Projects) == 0 {
		fmt.Fprintln(a.stdout, "No project is trusted. To trust one: loadout trust DIR")
		return nil
	}
	var rows [][]string
	for _, t := range out.Projects {
		state := "trusted"
		if t.Changed {
			state = "changed since: it counts for nothing"
		}
		rows = append(rows, []string{t.Dir, t.Digest.Short(), t.Created.Local().Format("2006-01-02 15:04"), state})
	}
	a.table("", rows)
	return nil
}

func (a *app) untrust(ctx context.Context, dir string) error {
	store := a.projects()
	var t policy.Trust
	err := policy.ErrNotTrusted
	if store != nil {
		t, err = store.Untrust(ctx, dir)
	}
	switch {
	case errors.Is(err, policy.ErrNotTrusted):
		return fail(exitNotFound, "see what is trusted: loadout trust --list", "%s is not trusted", dir)
	case err != nil:
		return err
	}
	if err := a.recordTrust(ctx, "untrust", t.Dir, t.Digest); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(trustOutput{Dir: t.Dir, Digest: t.Digest, Files: []policy.ProjectFile{}, State: "untrusted", Effects: []string{}, Ignored: []config.Note{}, Problems: []string{}})
	}
	fmt.Fprintf(a.stdout, "Not trusted any more: %s\n", plain(t.Dir))
	return nil
}

// recordTrust keeps what was decided in the audit log.
func (a *app) recordTrust(ctx context.Context, action, dir string, digest policy.Digest) error {
	log := a.audit()
	if log == nil {
		return nil
	}
	err := log.Append(ctx, policy.Record{Principal: policy.Local(), Action: action, Subject: digest, Name: dir, Decision: policy.Allowed})
	if err != nil {
		return fmt.Errorf("record it: %w", err)
	}
	return nil
}
