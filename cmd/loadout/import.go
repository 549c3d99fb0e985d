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

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

type importFlags struct {
	file                    string
	undo, dryRun, keep, yes bool
	allProjects             bool
}

// importOutput is the output of import --json.
type importOutput struct {
	Client  string           `json:"client"`
	File    string           `json:"file"`
	Action  string           `json:"action"`  // none, import or undo
	Done    bool             `json:"done"`    // false for --dry-run and none
	Servers []importedServer `json:"servers"` // of the client
	Secrets []movedSecret    `json:"secrets"` // values moved to secrets, or to be set by the user
	Into    string           `json:"into"`    // the user's servers file
	Backup  string           `json:"backup,omitempty"`
	Notes   []string         `json:"notes"`
	Next    []string         `json:"next"` // commands for the user to run
	Diff    string           `json:"diff,omitempty"`
}

type importedServer struct {
	Name      string   `json:"name"`              // in the client
	Project   string   `json:"project,omitempty"` // project to which the client limited it
	As        string   `json:"as,omitempty"`
	Transport string   `json:"transport,omitempty"`
	State     string   `json:"state"` // add, present, skipped, removed or kept
	Login     bool     `json:"login"` // may need a sign-in
	Problems  []string `json:"problems,omitempty"`
}

// importStep records what one import did to a client's file. It contains the
// credentials of that file.
type importStep struct {
	Original []byte               `json:"original"` // the file before the import
	Backup   string               `json:"backup,omitempty"`
	Kept     bool                 `json:"kept"`            // the file was not changed
	Names    []string             `json:"names"`           // entries removed from the file
	Local    []clientconfig.Local `json:"local,omitempty"` // removed entries of projects
	Entry    clientconfig.Entry   `json:"entry"`
	Servers  map[string]string    `json:"servers"`          // digests of the added servers, by name
	Shares   []string             `json:"shares,omitempty"` // existing servers that replace its entries
	Secrets  []string             `json:"secrets"`          // secrets set by this import
}

// maxImport bounds the record of imports from one file, in bytes.
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
		Short: "Import the MCP servers of a client",
		Long: fmt.Sprintf(`Import the MCP servers configured in a client into %s beside your configuration.
In the client, one entry for Loadout replaces them and serves them all.

The changes are shown first. The client's file is backed up, and nothing else in it
changes. Tokens move to secrets, in a file that only you can read. Logins stay with the
client; servers that need one are listed. From Claude Code, the servers of the current
project (added with "claude mcp add") are imported too, or those of all projects with
--all-projects. Running import again adds new servers; --undo restores the file.

The backup contains the tokens in clear text and is readable only by you. Delete it
when everything works; --undo deletes it after restoring everything. import asks for
confirmation on a terminal. It does not ask with --yes or --json, or if standard input
is not a terminal.

Clients: %s.`, serversFileName, strings.Join(clientconfig.Names(), ", ")),
		Example: `  loadout import claude-code --dry-run
  loadout import claude-code --all-projects
  loadout import cursor
  loadout import vscode --keep          do not change the client's file
  loadout import codex --undo`,
		Args: argCount(1, 1, "the name of a CLIENT: "+strings.Join(clientconfig.Names(), ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return clientconfig.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "keep", "undo"); err != nil {
				return err
			}
			if err := checkExclusive(cmd, "all-projects", "undo"); err != nil {
				return err
			}
			return a.importClient(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "read `FILE` instead of the client's default file")
	f.BoolVar(&o.undo, "undo", false, "undo earlier imports from this client")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the changes without applying them")
	f.BoolVar(&o.keep, "keep", false, "do not change the client's file")
	f.BoolVar(&o.allProjects, "all-projects", false, "import the servers of all projects (claude-code)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// importRun is one run of the command.
type importRun struct {
	app    *app
	flags  importFlags
	client clientconfig.Client
	target clientconfig.Target
	out    importOutput
	into   *serversDocument
	store  *secrets.Store
	log    *policy.PrivateFile
	record importRecord
}

func (a *app) importClient(ctx context.Context, name string, o importFlags) error {
	c, err := clientconfig.Lookup(name)
	if err != nil {
		return fail(exitUsage, "known clients: "+strings.Join(clientconfig.Names(), ", "), "unknown client %q", name)
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	im := &importRun{app: a, flags: o, client: c, target: clientconfig.Target{Client: c, Scope: clientconfig.User, File: o.file,
		Place: clientconfig.Place{OS: runtime.GOOS, Home: a.home(), Dir: dir, Getenv: a.getenv}},
		out: importOutput{Client: c.Name, Action: "none", Servers: []importedServer{}, Secrets: []movedSecret{}, Notes: []string{}, Next: []string{}}}
	if err := im.load(); err != nil {
		return err
	}
	if o.undo {
		return im.undo(ctx)
	}
	return im.importServers(ctx)
}

// load reads the user's servers and the record of earlier imports.
func (im *importRun) load() error {
	a := im.app
	if im.out.Into = a.serversFile(); im.out.Into == "" || a.stateDir() == "" {
		return fail(exitFailure, "set HOME, or XDG_CONFIG_HOME and LOADOUT_STATE", "no directory for the servers file")
	}
	found, err := clientconfig.Read(im.target)
	if err != nil {
		return im.fileError(err)
	}
	im.out.File = found.File
	if im.into, err = readServersDocument(im.out.Into); err != nil {
		return err
	}
	if im.store, err = a.secretStore(); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(found.File))
	im.log = policy.NewPrivateFile(filepath.Join(a.stateDir(), "imports", im.client.Name+"-"+hex.EncodeToString(sum[:8])+".json"), maxImport)
	data, err := im.log.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return a.secretError(err)
	case json.Unmarshal(data, &im.record) != nil || im.record.Version != 1:
		return fail(exitFailure, "move it away; --undo is not possible then", "cannot read the record of earlier imports from %s", im.client.Title)
	}
	im.record.Version, im.record.File = 1, found.File
	return nil
}

func (im *importRun) fileError(err error) error {
	return connectError(im.client, connectOptions{undo: true}, err)
}

// importServers imports the servers in the client's file.
func (im *importRun) importServers(ctx context.Context) error {
	a := im.app
	found, err := clientconfig.Read(im.target)
	if err != nil {
		return im.fileError(err)
	}
	entry, err := a.clientEntry(connectOptions{name: clientconfig.DefaultName})
	if err != nil {
		return err
	}
	if im.flags.allProjects && found.Projects() == nil {
		return fail(exitUsage, "omit --all-projects", "%s has no servers per project", im.client.Title)
	}
	step := importStep{Original: found.Data, Kept: im.flags.keep, Entry: entry, Servers: map[string]string{}}
	taken := map[string]string{} // secret values by name
	for _, f := range im.collectServers(found) {
		s, err := im.importServer(f, found.Inputs, taken, &step)
		if err != nil {
			return err
		}
		im.out.Servers = append(im.out.Servers, s)
	}
	var change *clientconfig.Change
	if !im.flags.keep && len(step.Names)+len(step.Local) > 0 {
		if change, err = clientconfig.PlanAdopt(im.target, step.Names, step.Local, entry); err != nil {
			return im.fileError(err)
		}
		step.Backup = change.Backup
		im.out.Backup, im.out.Diff = change.Backup, change.Diff()
		im.out.Notes = append(im.out.Notes, change.Notes...)
	}
	if len(step.Servers) > 0 || change != nil && change.Action != clientconfig.None {
		im.out.Action = "import"
	}
	im.addNextSteps(taken)
	if im.flags.keep && len(step.Servers) > 0 {
		im.out.Notes = append(im.out.Notes, im.client.Title+" still starts these servers itself")
	}
	if do, err := im.confirm(ctx); !do || err != nil {
		return err
	}
	if err := im.apply(ctx, step, taken, change); err != nil {
		return err
	}
	return im.printResult(change)
}

// isOwnEntry reports whether an entry is for Loadout itself, by its name or
// because it runs "loadout mcp", directly or through a wrapper. Importing it
// would make Loadout start itself.
func isOwnEntry(name string, value any) bool {
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
	return name == clientconfig.DefaultName || i >= 0 && slices.Contains(words[i+1:], "mcp")
}

// importServer decides what happens to one server of the client.
func (im *importRun) importServer(f clientServer, inputs any, taken map[string]string, step *importStep) (importedServer, error) {
	c, asked, findings := parseClientServer(im.client.Name, f.name, f.value, inputs)
	s := importedServer{Name: f.name, Project: f.project, State: "skipped"}
	for _, d := range findings {
		if d.Severity != skill.Info {
			s.Problems = append(s.Problems, d.Message)
		}
	}
	if c == nil {
		return s, nil // the entry stays in the client's file
	}
	setWorkDir(c, f.project)
	moving, err := moveSecrets(c, asked, func(name, value string) (string, error) {
		free, err := im.chooseSecretName(name, value, taken)
		if err == nil {
			taken[free] = value
		}
		return free, err
	})
	if err != nil {
		return s, err
	}
	s.Transport, s.Login = c.Type, mayNeedLogin(c)
	if s.As = im.chooseName(c, im.nameSuffix(f)); s.As == "" {
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
		step.Local = append(step.Local, clientconfig.Local{Project: f.project, Name: f.name})
		im.noteProject(f, s)
	}
	im.out.Secrets = append(im.out.Secrets, moving...)
	return s, nil
}

// chooseName returns a free name for a server, or "" if the same server already
// exists.
func (im *importRun) chooseName(c *upstream.Config, suffix string) string {
	name, first := c.Name, c.Name
	for i := 1; ; i++ {
		have := im.into.byName[name]
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

// chooseSecretName returns a name for a secret value. It appends a number if
// the name has another value.
func (im *importRun) chooseSecretName(name, value string, taken map[string]string) (string, error) {
	for i := 1; ; i++ {
		n := name
		if i > 1 {
			n += fmt.Sprint("_", i)
		}
		have, ok := taken[n]
		if !ok {
			var err error
			if have, err = im.store.Get(n); err != nil && !errors.Is(err, secrets.ErrNotSet) {
				return "", im.app.secretError(err)
			}
		}
		if have == "" || have == value {
			return n, nil
		}
	}
}

// addNextSteps adds the secrets to set and the sign-ins to the next steps.
func (im *importRun) addNextSteps(taken map[string]string) {
	for _, m := range im.out.Secrets {
		if cmd := "loadout secret set " + m.Secret; taken[m.Secret] == "" && !slices.Contains(im.out.Next, cmd) {
			if _, err := im.store.Get(m.Secret); err != nil {
				im.out.Next = append(im.out.Next, cmd)
			}
		}
	}
	for _, s := range im.out.Servers {
		if s.Login && s.State == "add" {
			im.out.Notes = append(im.out.Notes, "server "+s.As+" may need a sign-in; the sign-in of "+im.client.Title+" is not imported")
			im.out.Next = append(im.out.Next, "loadout servers login "+shellQuote(s.As))
		}
	}
}

// confirm prints the planned changes and reports whether to apply them.
func (im *importRun) confirm(ctx context.Context) (bool, error) {
	a := im.app
	idle := im.out.Action == "none"
	if a.json {
		if idle || im.flags.dryRun {
			return false, a.printJSON(im.out)
		}
		return true, nil
	}
	im.printPlan()
	if idle || im.flags.dryRun {
		return false, nil
	}
	if !im.flags.yes && isTerminal(a.stdin) {
		switch yes, err := a.confirm(ctx, "Apply these changes?"); {
		case err != nil:
			return false, err
		case !yes:
			return false, fail(exitRefused, "to see the changes again: loadout import "+im.client.Name+" --dry-run", "Cancelled. Nothing was changed.")
		}
	}
	return true, nil
}

func (im *importRun) printPlan() {
	a := im.app
	fmt.Fprintf(a.stdout, "%s: %s\n", im.client.Title, plain(im.out.File))
	var rows [][]string
	for _, s := range im.out.Servers {
		what := s.State
		switch {
		case s.State == "add" && s.As != s.Name:
			what = "import as " + s.As
		case s.State == "add":
			what = "import"
		case s.State == "present":
			what = "is in " + serversFileName + " already"
		case s.State == "skipped":
			what = "skip: " + strings.Join(s.Problems, "; ")
		case s.State == "removed":
			what = "remove"
		case s.State == "kept":
			what = "changed since, or used by another client; kept in " + serversFileName
		}
		if s.Project != "" {
			what += ", project " + s.Project
		}
		if len(s.Problems) > 0 && s.State != "skipped" {
			what += "; " + strings.Join(s.Problems, "; ")
		}
		rows = append(rows, []string{s.Name, s.Transport, what})
	}
	a.printTable("  ", rows)
	for _, m := range im.out.Secrets {
		fmt.Fprintf(a.stdout, "  %s of %s: move to the secret %s\n", plain(m.Where), plain(m.Server), m.Secret)
	}
	if im.out.Action == "none" {
		fmt.Fprintln(a.stdout, "Nothing to do.")
	} else if im.out.Diff != "" {
		fmt.Fprintf(a.stdout, "\n%s\n", safe(im.out.Diff))
	}
	var b strings.Builder
	for _, n := range im.out.Notes {
		a.writeWrapped(&b, "", "Note: "+n, noStyle)
	}
	fmt.Fprint(a.stdout, b.String())
}

// apply applies the changes, in an order that is safe to interrupt. The
// client's file comes last.
func (im *importRun) apply(ctx context.Context, step importStep, taken map[string]string, change *clientconfig.Change) error {
	data, err := im.into.encode()
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
			return im.app.secretError(err)
		}
	}
	im.record.Steps = append(im.record.Steps, step)
	if err := im.saveRecord(ctx); err != nil {
		return err
	}
	if len(step.Servers) > 0 {
		if err := im.into.write(data); err != nil {
			return fmt.Errorf("write %s: %w", im.out.Into, err)
		}
	}
	if change != nil {
		if err := change.Apply(); err != nil {
			return im.fileError(err)
		}
	}
	im.out.Done = true
	return im.recordAudit(ctx, "import", slices.Sorted(maps.Keys(step.Servers)))
}

// saveRecord saves the record for --undo.
func (im *importRun) saveRecord(ctx context.Context) error {
	return im.log.Change(ctx, func([]byte) ([]byte, error) { return json.Marshal(im.record) })
}

func (im *importRun) recordAudit(ctx context.Context, action string, names []string) error {
	log := im.app.auditLog()
	if log == nil {
		return nil
	}
	err := log.Append(ctx, policy.Record{Principal: policy.LocalUser(), Action: action, Name: im.client.Name, Decision: policy.VerdictAllow,
		Details: map[string]string{"file": im.out.File, "servers": strings.Join(names, " ")}})
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

func (im *importRun) printResult(change *clientconfig.Change) error {
	a := im.app
	if a.json {
		return a.printJSON(im.out)
	}
	fmt.Fprintln(a.stdout, "Done.")
	if im.out.Backup != "" {
		fmt.Fprintf(a.stdout, "Backup: %s. To undo: loadout import %s --undo%s\n", plain(im.out.Backup), im.client.Name, im.fileFlag())
		fmt.Fprintln(a.stdout, "The backup contains tokens in clear text. Delete it when everything works; --undo deletes it too.")
	}
	for _, n := range im.out.Next {
		fmt.Fprintf(a.stdout, "Next: %s\n", plain(n))
	}
	if change != nil && change.Next != "" {
		fmt.Fprintf(a.stdout, "Now %s.\n", plain(change.Next))
	}
	return nil
}

func (im *importRun) fileFlag() string {
	if im.flags.file == "" {
		return ""
	}
	return " --file " + shellQuote(im.flags.file)
}
