package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/sandbox"
)

// backendProbe is the result for one backend in sandbox probe --json.
type backendProbe struct {
	Backend string          `json:"backend"`
	Tier    int             `json:"tier"` // 0 if not usable
	Usable  bool            `json:"usable"`
	Chosen  bool            `json:"chosen"`
	Layers  []sandbox.Layer `json:"layers"`
	Missing string          `json:"missing,omitempty"` // why the backend is not usable
	Fix     string          `json:"fix,omitempty"`
}

type probeOutput struct {
	Backends []backendProbe `json:"backends"`
	Chosen   string         `json:"chosen"` // "" if no backend provides the required isolation
}

func (a *app) sandboxCommand() *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "sandbox",
		Short: "Inspect and test the sandbox for scripts",
		Long: `Inspect and test the sandbox used for skill scripts: show what each backend enforces and
lacks on this machine, or run a host command in the sandbox.`,
		Example: "  loadout sandbox probe\n  loadout sandbox run -- sh -c 'id; ls /; env'",
	})
	cmd.AddCommand(a.sandboxProbeCommand(), a.sandboxRunCommand())
	return cmd
}

func (a *app) sandboxProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "probe",
		Short: "Test the sandbox backends",
		Long: `Test every sandbox backend on this machine: start it, and try forbidden actions from
inside the sandbox. Exits with status 5 if no backend provides enough isolation.`,
		Example: "  loadout sandbox probe\n  loadout sandbox probe --json | jq -r .chosen",
		Args:    argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.LoadConfig(nil)
			if err != nil {
				return err
			}
			done := a.ShowProgress("testing sandboxes")
			out := probeBackends(cmd.Context(), a.Candidates(c), a.ProbeRecord())
			b, _, chooseErr := a.NewBackend(c).Renew(cmd.Context())
			done()
			if chooseErr == nil {
				out.Chosen = b.Name()
				for i := range out.Backends {
					out.Backends[i].Chosen = out.Backends[i].Backend == out.Chosen
				}
			}
			if a.JSON {
				if err := a.PrintJSON(out); err != nil {
					return err
				}
			} else {
				a.printProbe(out)
			}
			return chooseErr
		},
	}
}

func probeBackends(ctx context.Context, candidates []sandbox.Backend, record *selection.Record) probeOutput {
	out := probeOutput{Backends: []backendProbe{}}
	for _, o := range selection.ProbeAll(ctx, candidates, record) {
		p := backendProbe{Backend: o.Backend.Name(), Layers: []sandbox.Layer{}}
		if o.Err == nil {
			p.Usable, p.Tier, p.Layers = true, int(o.Report.Tier), o.Report.Layers
		} else {
			p.Missing = o.Err.Error()
			if e, ok := errors.AsType[*sandbox.UnavailableError](o.Err); ok {
				p.Fix = e.Fix
				p.Missing = strings.TrimPrefix(p.Missing, "sandbox "+p.Backend+": ")
			}
		}
		out.Backends = append(out.Backends, p)
	}
	return out
}

// layerIndent is the indentation of the second column of layers.
const layerIndent = "                       "

func (a *app) printProbe(out probeOutput) {
	var b strings.Builder
	for _, p := range out.Backends {
		mark, state := a.Red("✗"), "not usable"
		if p.Usable {
			mark, state = a.Green("✓"), "tier "+sandbox.Tier(p.Tier).String()
		}
		if p.Chosen {
			state += ", used for scripts"
		}
		fmt.Fprintf(&b, "%s %s  %s\n", mark, a.Bold(p.Backend), plain(state))
		if p.Missing != "" {
			a.WriteWrapped(&b, "    ", p.Missing, console.NoStyle)
		}
		if p.Fix != "" {
			a.WriteWrapped(&b, "    ", "to get it: "+p.Fix, a.Faint)
		}
		for _, l := range p.Layers {
			name := strings.ReplaceAll(l.Name, "_", " ")
			by, style := l.By, a.Faint
			if !l.Enforced {
				by, style = strings.TrimSuffix("not enforced: "+l.By, ": "), a.Red
			}
			var text strings.Builder
			a.WriteWrapped(&text, layerIndent, by, style)
			fmt.Fprintf(&b, "    %-18s %s", name, strings.TrimPrefix(text.String(), layerIndent))
			if l.Fix != "" {
				a.WriteWrapped(&b, layerIndent, l.Fix, a.Faint)
			}
		}
	}
	fmt.Fprint(a.Stdout, b.String())
}

func (a *app) sandboxRunCommand() *cobra.Command {
	var in []string
	var out string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARGS]",
		Short: "Run a command in the sandbox",
		Long: `Run a host command in the sandbox used for skill scripts, to see what scripts see: no
network, none of your files, and an empty /work.`,
		Example: `  loadout sandbox run -- sh -c 'id; ls -la / /work; env'
  loadout sandbox run --in data.csv -- wc -l /work/in/data.csv
  loadout sandbox run --backend bwrap -- python3 -c 'print(open("/etc/passwd").read())'`,
		Args: argCount(1, -1, "a COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDuration(cmd, "timeout", timeout); err != nil {
				return err
			}
			c, err := a.loadConfigWithFlags(cmd, map[string]string{"backend": "sandbox.backend"})
			if err != nil {
				return err
			}
			return a.runInSandbox(cmd.Context(), a.NewBackend(c), args, in, out, timeout)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&in, "in", nil, "provide the file or directory `PATH` as /work/in/NAME (repeatable)")
	f.StringVar(&out, "out", "", "write the files in /work/out into `DIR`")
	f.String("backend", "", "use the backend `NAME`")
	f.DurationVar(&timeout, "timeout", 0, "stop the command after `TIME`, such as 10s; default 1m")
	var names []string
	for _, b := range selection.Candidates(nil) {
		names = append(names, b.Name())
	}
	completeFlag(cmd, "backend", names...)
	return cmd
}

func (a *app) runInSandbox(ctx context.Context, b sandbox.Backend, args, in []string, out string, timeout time.Duration) error {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}, Scripts: &loadout.Scripts{Sandbox: b}})
	if err != nil {
		return err
	}
	defer rt.Close()
	c := loadout.Command{Args: args, OutputDir: out, Timeout: timeout, Stdin: a.Stdin}
	if c.Inputs, err = openInputs(in); err != nil {
		return err
	}
	if err := setup.CheckDirectory("out", out); err != nil {
		return err
	}
	if !a.JSON {
		c.Stdout, c.Stderr = a.Stdout, a.Stderr
	}
	end := a.filterOutput(&c.Stdout, &c.Stderr)
	res, err := rt.Command(ctx, c)
	end()
	if err != nil {
		return err
	}
	res.Script = args[0]
	err = a.printRun(res, &runFlags{out: out})
	if res.Reason != sandbox.StartFailed {
		return err
	}
	return exit.Errorf(exit.Missing, "name a program in /usr or /bin, or a path in the sandbox; to list programs: loadout sandbox run -- ls /usr/bin",
		"cannot start the command %s in the sandbox: %s", console.ShellQuote(args[0]), strings.TrimPrefix(res.Detail, "start "+args[0]+": "))
}
