package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
)

// setupOutput is the JSON output of the commands setup and disconnect --all.
type setupOutput struct {
	Clients []setupClient `json:"clients"`
	Applied bool          `json:"applied"` // whether files were changed
	Notes   []string      `json:"notes"`
	Next    []string      `json:"next"` // what the user should do now
}

type setupClient struct {
	Client string              `json:"client"`
	Title  string              `json:"title"`
	Found  string              `json:"found,omitempty"` // path that shows that the client is installed
	File   string              `json:"file,omitempty"`
	Action clientconfig.Action `json:"action"`
	Backup string              `json:"backup,omitempty"`
	Notes  []string            `json:"notes,omitempty"`
	Diff   string              `json:"diff,omitempty"`
	Error  string              `json:"error,omitempty"` // why the client's file was not changed
}

func (a *app) setupCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Connect Loadout to all installed MCP clients",
		Long: fmt.Sprintf(`Find the MCP clients that are installed for you, show how their configuration files
would change, and connect all of them after one confirmation. Each file is backed up,
and nothing else in it changes. "loadout disconnect --all" restores the files that have
not changed since, and removes only the entry from the others.

setup writes nothing without a confirmation: without a terminal or with --json, it only
shows the changes unless --yes is given. If an agent runs setup, it refuses. The entries
start this program with the given --skills and --config. Without these flags, setup does
not change an entry that already starts Loadout with options or connects to a URL.

Connecting a client approves nothing: scripts and servers of skills still need your
approval.

%s`, clientList()),
		Example: `  loadout setup
  loadout setup --yes              connect without asking
  loadout setup --json             show the changes as JSON
  loadout disconnect --all         undo it`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runSetup(cmd.Context(), yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (a *app) runSetup(ctx context.Context, yes bool) error {
	entry, err := a.clientEntry(connectOptions{name: clientconfig.DefaultName})
	if err != nil {
		return err
	}
	plan := clientconfig.PlanMissing
	if len(a.Skills) > 0 || a.ConfigFile != "" {
		plan = clientconfig.Plan // the user asks for other options
	}
	s := &clientSetup{app: a, args: []string{"setup"}, verb: "connect"}
	for _, c := range clientconfig.All() {
		target := a.clientTarget(c, clientconfig.User, "")
		entry := c.WithVariables(entry, target.Environment)
		if found, ok := c.Installed(target.Environment); ok {
			change, err := plan(target, entry)
			s.plans = append(s.plans, clientPlan{client: c, found: found, change: change, err: err,
				planAgain: func() (*clientconfig.Change, error) { return plan(target, entry) }})
		}
	}
	if len(s.plans) == 0 && !a.JSON {
		return exit.Errorf(exit.NotFound, "to connect a client that was not found: loadout connect CLIENT; supported: "+strings.Join(clientconfig.Names(), ", "), "no MCP client found for this user")
	}
	s.out.Notes = append(s.out.Notes, setupNotes(runtime.GOOS)...)
	return s.run(ctx, yes)
}

// setupNotes returns notes about Loadout on the given system.
func setupNotes(goos string) []string {
	if goos == "windows" {
		return []string{"on Windows, scripts of skills do not run, because there is no sandbox for them; agents can read all skills and call the tools of your MCP servers"}
	}
	return nil
}

// clientSetup changes the configuration files of several clients.
type clientSetup struct {
	app   *app
	args  []string // arguments of the command
	verb  string   // "connect" or "disconnect"
	plans []clientPlan
	out   setupOutput
}

type clientPlan struct {
	client clientconfig.Client
	found  string
	change *clientconfig.Change // nil if err is not nil
	err    error
	shown  bool // whether the printed plan contains err
	again  bool // whether change was planned again, after the plan was printed

	planAgain func() (*clientconfig.Change, error) // plans the change of the file as it is now
}

// apply applies the change and reports whether it wrote the file. If the file has
// changed in the meantime, for example because setup runs twice, apply plans the
// change again. It writes the new change only if review is false.
func (p *clientPlan) apply(review bool) bool {
	p.err = p.change.Apply()
	if p.err == nil || !errors.Is(p.err, clientconfig.ErrChanged) {
		return p.err == nil
	}
	again, err := p.planAgain()
	switch {
	case err != nil:
		p.err = err
	case again.Action == clientconfig.None:
		p.change, p.err, p.again = again, nil, true
	case !review:
		p.change, p.err, p.again = again, again.Apply(), true
		return p.err == nil
	}
	return false
}

// pending returns the plans that change a file.
func (s *clientSetup) pending() []*clientPlan {
	var out []*clientPlan
	for i := range s.plans {
		if p := &s.plans[i]; p.err == nil && p.change.Action != clientconfig.None {
			out = append(out, p)
		}
	}
	return out
}

// run shows the changes, asks for a single confirmation, and applies them. If a
// file cannot be changed, run still changes the others.
func (s *clientSetup) run(ctx context.Context, yes bool) error {
	a := s.app
	pending := s.pending()
	if !a.JSON {
		s.printPlan()
	}
	if len(pending) > 0 {
		apply, err := s.confirm(ctx, yes)
		if err != nil {
			return err
		}
		if apply {
			for _, p := range pending {
				if p.apply(!yes) {
					s.out.Applied = true
				}
			}
		}
	}
	s.setOutput()
	if a.JSON {
		if err := a.PrintJSON(s.out); err != nil {
			return err
		}
	} else {
		s.printResult(pending)
	}
	return s.failure()
}

// confirm reports whether to apply the changes.
func (s *clientSetup) confirm(ctx context.Context, yes bool) (bool, error) {
	a := s.app
	if a.JSON && !yes {
		return false, nil // a preview, which agents may see too
	}
	if err := a.RefuseAgent(ctx, s.args...); err != nil {
		return false, err
	}
	command := "loadout " + strings.Join(s.args, " ")
	switch {
	case yes:
		return true, nil
	case !console.IsTerminal(a.Stdin):
		return false, exit.Errorf(exit.Refused, "to apply these changes: "+command+" --yes", "cannot ask for confirmation without a terminal; nothing was changed")
	}
	switch yes, err := a.Confirm(ctx, fmt.Sprintf("%s %s?", upperFirst(s.verb), joinTitles(s.pending()))); {
	case err != nil:
		return false, err
	case !yes:
		return false, exit.Errorf(exit.Refused, "for a single client: loadout connect CLIENT", "Cancelled. Nothing was changed.")
	}
	return true, nil
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// joinTitles returns the names of clients as text: "A, B and C".
func joinTitles(plans []*clientPlan) string {
	var titles []string
	for _, p := range plans {
		titles = append(titles, p.client.Title)
	}
	if n := len(titles); n > 1 {
		return strings.Join(titles[:n-1], ", ") + " and " + titles[n-1]
	}
	return strings.Join(titles, "")
}

// printPlan prints a table of the clients, and then the change of each file.
func (s *clientSetup) printPlan() {
	a := s.app
	var rows [][]string
	for i, p := range s.plans {
		rows = append(rows, []string{p.client.Title, plain(s.describe(p))})
		s.plans[i].shown = p.err != nil
	}
	a.PrintTable("  ", rows)
	if len(s.plans) > 0 {
		fmt.Fprintln(a.Stdout)
	}
	for _, p := range s.pending() {
		a.printChange(p.client, p.change, connectOptions{})
		if len(p.change.Notes) > 0 {
			fmt.Fprintln(a.Stdout)
		}
	}
	var b strings.Builder
	for _, n := range s.out.Notes {
		a.WriteWrapped(&b, "", "Note: "+n, console.NoStyle)
	}
	fmt.Fprint(a.Stdout, b.String())
}

// describe returns a description of the change to a client's configuration
// file.
func (s *clientSetup) describe(p clientPlan) string {
	if p.err != nil {
		return "cannot be changed: " + s.errorText(p.err)
	}
	if p.change.Existing != "" {
		return "already connected in " + p.change.File + ", " + p.change.Existing
	}
	if s.verb == "disconnect" && p.change.Action == clientconfig.Replace {
		return "restore the replaced entry in " + p.change.File
	}
	return map[clientconfig.Action]string{
		clientconfig.None:    "already connected in ",
		clientconfig.Create:  "create ",
		clientconfig.Add:     "add an entry to ",
		clientconfig.Replace: "replace the entry in ",
		clientconfig.Remove:  "remove the entry from ",
		clientconfig.Delete:  "delete ",
	}[p.change.Action] + p.change.File
}

// errorText returns the text of an error about a client's file.
func (s *clientSetup) errorText(err error) string {
	if fe, ok := errors.AsType[*clientconfig.FileError](err); ok {
		fixed := *fe
		fixed.Fix = fixFor(fe, s.verb == "disconnect")
		return fixed.Error()
	}
	return err.Error()
}

// setOutput sets the JSON output according to the plans and their results.
func (s *clientSetup) setOutput() {
	s.out.Clients = []setupClient{}
	for _, p := range s.plans {
		c := setupClient{Client: p.client.Name, Title: p.client.Title, Found: p.found, Action: clientconfig.None}
		if p.change != nil {
			c.File, c.Action, c.Backup, c.Notes, c.Diff = p.change.File, p.change.Action, p.change.Backup, p.change.Notes, p.change.Diff()
		}
		if p.err != nil {
			c.Error = s.errorText(p.err)
		}
		s.out.Clients = append(s.out.Clients, c)
	}
	s.out.Notes, s.out.Next = append([]string{}, s.out.Notes...), []string{}
	switch {
	case !s.out.Applied && len(s.pending()) > 0:
		s.out.Next = append(s.out.Next, s.applyStep())
	case s.verb == "connect" && s.connected():
		for _, p := range s.pending() {
			s.out.Next = append(s.out.Next, p.change.Next)
		}
		s.out.Next = append(s.out.Next, "ask your agent: Which skills do you have?")
	}
}

// applyStep returns the next step after a preview: how to apply the changes. If
// an agent runs the command, the step is to ask the user.
func (s *clientSetup) applyStep() string {
	command := "loadout " + strings.Join(s.args, " ")
	if s.app.Caller().Agent != "" {
		return "to apply these changes, ask the user to run `" + command + "` in their own terminal"
	}
	return "to apply these changes: " + command + " --yes"
}

// connected reports whether at least one client is connected now.
func (s *clientSetup) connected() bool {
	return slices.ContainsFunc(s.plans, func(p clientPlan) bool { return p.err == nil })
}

// printResult prints what was changed and what to do now.
func (s *clientSetup) printResult(pending []*clientPlan) {
	a := s.app
	var done []*clientPlan
	for _, p := range pending {
		if p.again {
			fmt.Fprintf(a.Stdout, "%s changed meanwhile, so its change is now:\n", plain(p.change.File))
			a.printChange(p.client, p.change, connectOptions{undo: s.verb == "disconnect"})
		}
		if p.err == nil {
			done = append(done, p)
		}
	}
	switch {
	case len(pending) == 0 && len(s.failed()) == 0:
		fmt.Fprintln(a.Stdout, "Nothing to do.")
	case len(done) > 0:
		fmt.Fprintf(a.Stdout, "Done: %sed %s.\n", s.verb, joinTitles(done))
	}
	if s.verb != "connect" {
		return
	}
	if len(done) > 0 {
		fmt.Fprintln(a.Stdout, "To undo: loadout disconnect --all")
	}
	for _, n := range s.out.Next {
		fmt.Fprintf(a.Stdout, "Next: %s\n", plain(n))
	}
}

// failure returns an error if a file could not be changed.
func (s *clientSetup) failure() error {
	failed := s.failed()
	if len(failed) == 0 {
		return nil
	}
	hint := "correct its file and try again, or change it by hand"
	if s.verb == "connect" {
		hint += ": loadout connect " + failed[0].client.Name + " --print"
	}
	message := fmt.Sprintf("cannot %s %s", s.verb, joinTitles(failed))
	for _, p := range failed {
		if !p.shown {
			message += ": " + s.errorText(p.err)
			break
		}
	}
	return exit.Errorf(exit.Failure, hint, "%s", message)
}

// failed returns the plans whose file could not be changed.
func (s *clientSetup) failed() []*clientPlan {
	var failed []*clientPlan
	for i := range s.plans {
		if s.plans[i].err != nil {
			failed = append(failed, &s.plans[i])
		}
	}
	return failed
}
