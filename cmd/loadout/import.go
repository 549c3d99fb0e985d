package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

type importFlags struct {
	file                    string
	undo, dryRun, keep, yes bool
	allProjects             bool
}

// importOutput is import --json.
type importOutput struct {
	Client  string           `json:"client"`
	File    string           `json:"file"`
	Action  string           `json:"action"`  // none, import or undo
	Done    bool             `json:"done"`    // false for --dry-run and none
	Servers []importedServer `json:"servers"` // of the client
	Secrets []moved          `json:"secrets"` // values that move, or have to be set
	Into    string           `json:"into"`    // the file with the person's own servers
	Backup  string           `json:"backup,omitempty"`
	Notes   []string         `json:"notes"`
	Next    []string         `json:"next"` // commands for the person
	Diff    string           `json:"diff,omitempty"`
}

type importedServer struct {
	Name      string   `json:"name"`              // in the client
	Project   string   `json:"project,omitempty"` // in which alone it counted
	As        string   `json:"as,omitempty"`
	Transport string   `json:"transport,omitempty"`
	State     string   `json:"state"` // add, present, skipped, removed or kept
	Login     bool     `json:"login"` // may want a login of its own
	Problems  []string `json:"problems,omitempty"`
}

// importStep is what one import did to a client's file. It holds credentials
// where the file did.
type importStep struct {
	Original []byte            `json:"original"` // the file before
	Backup   string            `json:"backup,omitempty"`
	Kept     bool              `json:"kept"`            // the file was not changed
	Names    []string          `json:"names"`           // of the entries that were taken out
	Local    []client.Local    `json:"local,omitempty"` // and of those of projects
	Entry    client.Entry      `json:"entry"`
	Servers  map[string]string `json:"servers"`          // that were added, with their digests
	Shares   []string          `json:"shares,omitempty"` // servers that were there already, and stand in for its entries
	Secrets  []string          `json:"secrets"`          // that were set
}

// maxImport bounds the record of the imports from one file, in bytes.
const maxImport = 64 << 20

type importRecord struct {
	Version int          `json:"version"`
	File    string       `json:"file"`
	Steps   []importStep `json:"steps"`
}

func (a *app) importCommand() *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import CLIENT",
		Short: "Take over the MCP servers of a client",
		Long: fmt.Sprintf(`Take over the MCP servers that are configured in a client: they go to %s
beside your configuration, and in the client one entry of Loadout takes their place,
which serves them all. What would be done is shown first, and a backup of the
client's file is kept; everything else in it stays as it is. Tokens move to secrets,
in a file that only you can read. A login stays with the client: servers that want
one are named. Of Claude Code, the servers of the project that you are in come too
(those that "claude mcp add" puts there), and those of all with --all-projects. Doing
it again takes over what is new; --undo puts all back. The backup has the tokens as
they were, for you alone to read: delete it once all works. --undo deletes it, where
everything goes back.
On a terminal it asks first; where standard input is none, and with --json, it acts at
once, without --yes.

Clients: %s.`, serversName, strings.Join(client.Names(), ", ")),
		Example: `  loadout import claude-code --dry-run
  loadout import claude-code --all-projects
  loadout import cursor
  loadout import vscode --keep          leave the client's own entries
  loadout import codex --undo`,
		Args: want(1, 1, "the name of a CLIENT: "+strings.Join(client.Names(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return client.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "keep", "undo"); err != nil {
				return err
			}
			if err := exclusive(cmd, "all-projects", "undo"); err != nil {
				return err
			}
			return a.importClient(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "read this `FILE` instead of the client's usual one")
	f.BoolVar(&o.undo, "undo", false, "put back what was taken over")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and do nothing")
	f.BoolVar(&o.keep, "keep", false, "leave the client's file as it is")
	f.BoolVar(&o.allProjects, "all-projects", false, "also the servers of all projects (claude-code)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal")
	return cmd
}

// importing is one run of the command.
type importing struct {
	app    *app
	flags  importFlags
	client client.Client
	target client.Target
	out    importOutput
	into   *ownServers
	store  *secrets.Store
	log    *policy.OwnFile
	record importRecord
}

func (a *app) importClient(ctx context.Context, name string, o importFlags) error {
	c, err := client.Lookup(name)
	if err != nil {
		return fail(exitUsage, "the clients: "+strings.Join(client.Names(), ", "), "%q is not a client that Loadout knows", name)
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	im := &importing{app: a, flags: o, client: c, target: client.Target{Client: c, Scope: client.User, File: o.file,
		Place: client.Place{OS: runtime.GOOS, Home: a.home(), Dir: dir, Getenv: a.getenv}},
		out: importOutput{Client: c.Name, Action: "none", Servers: []importedServer{}, Secrets: []moved{}, Notes: []string{}, Next: []string{}}}
	if err := im.open(); err != nil {
		return err
	}
	if o.undo {
		return im.undo(ctx)
	}
	return im.take(ctx)
}

// open reads the person's own servers, and what was imported before.
func (im *importing) open() error {
	a := im.app
	if im.out.Into = a.serversFile(); im.out.Into == "" || a.stateDir() == "" {
		return fail(exitFound, "set HOME, or XDG_CONFIG_HOME and LOADOUT_STATE", "there is no place to keep the servers")
	}
	found, err := client.Read(im.target)
	if err != nil {
		return im.failed(err)
	}
	im.out.File = found.File
	if im.into, err = readOwnServers(im.out.Into); err != nil {
		return err
	}
	if im.store, err = a.secretStore(); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(found.File))
	im.log = policy.NewOwnFile(filepath.Join(a.stateDir(), "imports", im.client.Name+"-"+hex.EncodeToString(sum[:8])+".json"), maxImport)
	data, err := im.log.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return a.secretFailed(err)
	case json.Unmarshal(data, &im.record) != nil || im.record.Version != 1:
		return fail(exitFound, "move it away; --undo is not possible then", "what was imported from %s before cannot be read", im.client.Title)
	}
	im.record.Version, im.record.File = 1, found.File
	return nil
}

func (im *importing) failed(err error) error {
	return connectFailed(im.client, connectOptions{undo: true}, err)
}

// take imports what is in the client's file.
func (im *importing) take(ctx context.Context) error {
	a := im.app
	found, err := client.Read(im.target)
	if err != nil {
		return im.failed(err)
	}
	entry, err := a.clientEntry(connectOptions{name: client.DefaultName})
	if err != nil {
		return err
	}
	if im.flags.allProjects && found.Projects() == nil {
		return fail(exitUsage, "leave --all-projects out", "%s keeps no servers of projects in its own file", im.client.Title)
	}
	step := importStep{Original: found.Data, Kept: im.flags.keep, Entry: entry, Servers: map[string]string{}}
	taken := map[string]string{} // secrets by name
	for _, f := range im.foreigners(found) {
		s, err := im.server(f, found.Inputs, taken, &step)
		if err != nil {
			return err
		}
		im.out.Servers = append(im.out.Servers, s)
	}
	var change *client.Change
	if !im.flags.keep && len(step.Names)+len(step.Local) > 0 {
		if change, err = client.PlanAdopt(im.target, step.Names, step.Local, entry); err != nil {
			return im.failed(err)
		}
		step.Backup = change.Backup
		im.out.Backup, im.out.Diff = change.Backup, change.Diff()
		im.out.Notes = append(im.out.Notes, change.Notes...)
	}
	if len(step.Servers) > 0 || change != nil && change.Action != client.None {
		im.out.Action = "import"
	}
	im.advise(taken)
	if im.flags.keep && len(step.Servers) > 0 {
		im.out.Notes = append(im.out.Notes, im.client.Title+" still starts these servers itself")
	}
	if do, err := im.show(ctx); !do || err != nil {
		return err
	}
	if err := im.apply(ctx, step, taken, change); err != nil {
		return err
	}
	return im.finish(change)
}

// ours reports whether an entry is Loadout's own, which would reach itself: by its
// name, or because it runs "loadout mcp", however that is wrapped.
func ours(name string, value any) bool {
	m, _ := value.(map[string]any)
	var words []string
	for _, key := range []string{"command", "args"} {
		switch v := m[key].(type) {
		case string:
			words = append(words, v)
			words = append(words, strings.Fields(v)...)
		case []any:
			for _, w := range v {
				if s, ok := w.(string); ok {
					words = append(words, s)
					words = append(words, strings.Fields(s)...)
				}
			}
		}
	}
	i := slices.IndexFunc(words, func(w string) bool {
		base := w[strings.LastIndexAny(w, `/\`)+1:]
		return strings.TrimSuffix(strings.ToLower(base), ".exe") == "loadout"
	})
	return name == client.DefaultName || i >= 0 && slices.Contains(words[i+1:], "mcp")
}

// server works out what becomes of one server of the client.
func (im *importing) server(f foreign, inputs any, taken map[string]string, step *importStep) (importedServer, error) {
	c, asked, findings := parseForeign(im.client.Name, f.name, f.value, inputs)
	s := importedServer{Name: f.name, Project: f.project, State: "skipped"}
	for _, d := range findings {
		if d.Severity != skill.Info {
			s.Problems = append(s.Problems, d.Message)
		}
	}
	if c == nil {
		return s, nil // it stays where it is
	}
	stayIn(c, f.project)
	moving, err := moveSecrets(c, asked, func(name, value string) (string, error) {
		free, err := im.freeSecret(name, value, taken)
		if err == nil {
			taken[free] = value
		}
		return free, err
	})
	if err != nil {
		return s, err
	}
	s.Transport, s.Login = c.Type, wantsLogin(c)
	if s.As = im.place(c, im.suffix(f)); s.As == "" {
		s.As, s.State = c.Name, "present"
		step.Shares = append(step.Shares, c.Name)
	} else {
		c.Name, s.State = s.As, "add"
		im.into.add(c)
		step.Servers[c.Name] = c.Digest()
	}
	if f.project == "" {
		step.Names = append(step.Names, f.name)
	} else {
		step.Local = append(step.Local, client.Local{Project: f.project, Name: f.name})
		im.sayProject(f, s)
	}
	im.out.Secrets = append(im.out.Secrets, moving...)
	return s, nil
}

// place is the name under which a server can be added, "" where it is there.
func (im *importing) place(c *upstream.Config, suffix string) string {
	name, first := c.Name, c.Name
	for i := 1; ; i++ {
		have := im.into.have[name]
		if have == nil {
			return name
		}
		same := *c
		same.Name = name
		if have.Digest() == same.Digest() {
			c.Name = name
			return ""
		}
		name = first + "-" + suffix
		if i > 1 {
			name += fmt.Sprint("-", i)
		}
	}
}

// freeSecret is the name under which a value can be kept: where another has the
// name, with a number.
func (im *importing) freeSecret(name, value string, taken map[string]string) (string, error) {
	for i := 1; ; i++ {
		n := name
		if i > 1 {
			n += fmt.Sprint("_", i)
		}
		have, ok := taken[n]
		if !ok {
			var err error
			if have, err = im.store.Get(n); err != nil && !errors.Is(err, secrets.ErrNotSet) {
				return "", im.app.secretFailed(err)
			}
		}
		if have == "" || have == value {
			return n, nil
		}
	}
}

// advise says what the person has to do besides.
func (im *importing) advise(taken map[string]string) {
	for _, m := range im.out.Secrets {
		if cmd := "loadout secret set " + m.Secret; taken[m.Secret] == "" && !slices.Contains(im.out.Next, cmd) {
			if _, err := im.store.Get(m.Secret); err != nil {
				im.out.Next = append(im.out.Next, cmd)
			}
		}
	}
	for _, s := range im.out.Servers {
		if s.Login && s.State == "add" {
			im.out.Notes = append(im.out.Notes, "server "+s.As+" may want a login of its own: the one in "+im.client.Title+" stays there")
			im.out.Next = append(im.out.Next, "loadout servers login "+quoted(s.As))
		}
	}
}

// show prints what would be done, and reports whether it is to be done.
func (im *importing) show(ctx context.Context) (bool, error) {
	a := im.app
	idle := im.out.Action == "none"
	if a.json {
		if idle || im.flags.dryRun {
			return false, a.printJSON(im.out)
		}
		return true, nil
	}
	im.print()
	if idle || im.flags.dryRun {
		return false, nil
	}
	if !im.flags.yes && isTerminal(a.stdin) {
		switch yes, err := a.confirm(ctx, "Do this?"); {
		case err != nil:
			return false, err
		case !yes:
			return false, fail(exitRefused, "to see it again: loadout import "+im.client.Name+" --dry-run", "nothing was changed, as you said")
		}
	}
	return true, nil
}

func (im *importing) print() {
	a := im.app
	fmt.Fprintf(a.stdout, "%s: %s\n", im.client.Title, plain(im.out.File))
	var rows [][]string
	for _, s := range im.out.Servers {
		what := s.State
		switch {
		case s.State == "add" && s.As != s.Name:
			what = "is taken over as " + s.As
		case s.State == "add":
			what = "is taken over"
		case s.State == "present":
			what = "is in " + serversName + " already"
		case s.State == "skipped":
			what = "stays: " + strings.Join(s.Problems, "; ")
		case s.State == "removed":
			what = "goes back"
		case s.State == "kept":
			what = "was changed since, or is another client's too, and stays in " + serversName
		}
		if s.Project != "" {
			what += ", of the project " + s.Project
		}
		if len(s.Problems) > 0 && s.State != "skipped" {
			what += "; " + strings.Join(s.Problems, "; ")
		}
		rows = append(rows, []string{s.Name, s.Transport, what})
	}
	a.table("  ", rows)
	for _, m := range im.out.Secrets {
		fmt.Fprintf(a.stdout, "  %s of %s becomes the secret %s\n", plain(m.Where), plain(m.Server), m.Secret)
	}
	if im.out.Action == "none" {
		fmt.Fprintln(a.stdout, "Nothing to do.")
	} else if im.out.Diff != "" {
		fmt.Fprintf(a.stdout, "\n%s\n", safe(im.out.Diff))
	}
	var b strings.Builder
	for _, n := range im.out.Notes {
		a.wrap(&b, "", "Note: "+n, same)
	}
	fmt.Fprint(a.stdout, b.String())
}

// apply does it: first what harms nobody when it stays, the client's file last.
func (im *importing) apply(ctx context.Context, step importStep, taken map[string]string, change *client.Change) error {
	data, err := im.into.text()
	if err != nil {
		return err
	}
	fresh := map[string]string{}
	for name, value := range taken {
		if _, err := im.store.Get(name); err != nil {
			fresh[name] = value
		}
	}
	if step.Secrets = slices.Sorted(maps.Keys(fresh)); len(fresh) > 0 {
		if err := im.store.SetAll(ctx, fresh); err != nil {
			return im.app.secretFailed(err)
		}
	}
	im.record.Steps = append(im.record.Steps, step)
	if err := im.keep(ctx); err != nil {
		return err
	}
	if len(step.Servers) > 0 {
		if err := im.into.write(data); err != nil {
			return fmt.Errorf("write %s: %w", im.out.Into, err)
		}
	}
	if change != nil {
		if err := change.Apply(); err != nil {
			return im.failed(err)
		}
	}
	im.out.Done = true
	return im.audit(ctx, "import", slices.Sorted(maps.Keys(step.Servers)))
}

// keep writes what was imported, for --undo.
func (im *importing) keep(ctx context.Context) error {
	return im.log.Change(ctx, func([]byte) ([]byte, error) { return json.Marshal(im.record) })
}

func (im *importing) audit(ctx context.Context, action string, names []string) error {
	log := im.app.audit()
	if log == nil {
		return nil
	}
	err := log.Append(ctx, policy.Record{Principal: policy.Local(), Action: action, Name: im.client.Name, Decision: policy.Allowed,
		Details: map[string]string{"file": im.out.File, "servers": strings.Join(names, " ")}})
	if err != nil {
		return fmt.Errorf("record it: %w", err)
	}
	return nil
}

func (im *importing) finish(change *client.Change) error {
	a := im.app
	if a.json {
		return a.printJSON(im.out)
	}
	fmt.Fprintln(a.stdout, "Done.")
	if im.out.Backup != "" {
		fmt.Fprintf(a.stdout, "The file as it was is in %s; to go back: loadout import %s --undo%s\n", plain(im.out.Backup), im.client.Name, im.fileFlag())
		fmt.Fprintln(a.stdout, "That backup has its tokens in clear until --undo deletes it: delete it yourself once all works.")
	}
	for _, n := range im.out.Next {
		fmt.Fprintf(a.stdout, "Next: %s\n", plain(n))
	}
	if change != nil && change.Next != "" {
		fmt.Fprintf(a.stdout, "Now %s.\n", plain(change.Next))
	}
	return nil
}

func (im *importing) fileFlag() string {
	if im.flags.file == "" {
		return ""
	}
	return " --file " + quoted(im.flags.file)
}
