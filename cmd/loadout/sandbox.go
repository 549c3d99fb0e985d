package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
)

// probed is one back end in sandbox probe --json.
type probed struct {
	Backend string          `json:"backend"`
	Tier    int             `json:"tier"` // 0 where it cannot be used
	Usable  bool            `json:"usable"`
	Chosen  bool            `json:"chosen"`
	Layers  []sandbox.Layer `json:"layers"`
	Missing string          `json:"missing,omitempty"` // why it cannot be used
	Fix     string          `json:"fix,omitempty"`
}

type probeOutput struct {
	Backends []probed `json:"backends"`
	Chosen   string   `json:"chosen"` // "" where nothing isolates enough
}

func (a *app) sandboxCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "sandbox",
		Short: "Look at what isolates scripts here",
		Long: `Look at what isolates scripts of skills on this machine: which ways there are, what
each enforces and what is missing; and try it with a command of your own.`,
		Example: "  loadout sandbox probe\n  loadout sandbox run -- sh -c 'id; ls /; env'",
	})
	cmd.AddCommand(a.sandboxProbeCommand(), a.sandboxRunCommand())
	return cmd
}

func (a *app) sandboxProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "probe",
		Short: "Try every way to isolate, and say what it enforces",
		Long: `Try every way to isolate: each is set up for real, and what must not work in it is
tried from inside. Exits with 5 if none isolates enough.`,
		Example: "  loadout sandbox probe\n  loadout sandbox probe --json | jq -r .chosen",
		Args:    want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings(nil)
			if err != nil {
				return err
			}
			done := a.progress("trying sandboxes")
			out := survey(cmd.Context(), a.candidates(c))
			b, _, chooseErr := a.backend(c).Choose(cmd.Context())
			done()
			if chooseErr == nil {
				out.Chosen = b.Name()
				for i := range out.Backends {
					out.Backends[i].Chosen = out.Backends[i].Backend == out.Chosen
				}
			}
			if a.json {
				if err := a.printJSON(out); err != nil {
					return err
				}
			} else {
				a.printProbe(out)
			}
			return chooseErr
		},
	}
}

func survey(ctx context.Context, candidates []sandbox.Backend) probeOutput {
	out := probeOutput{Backends: []probed{}}
	for _, o := range auto.Survey(ctx, candidates) {
		p := probed{Backend: o.Backend.Name(), Layers: []sandbox.Layer{}}
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

// layerIndent is where the second column of the layers begins.
const layerIndent = "                       "

func (a *app) printProbe(out probeOutput) {
	var b strings.Builder
	for _, p := range out.Backends {
		mark, state := a.red("✗"), "cannot be used"
		if p.Usable {
			mark, state = a.green("✓"), "tier "+sandbox.Tier(p.Tier).String()
		}
		if p.Chosen {
			state += ", used for scripts"
		}
		fmt.Fprintf(&b, "%s %s  %s\n", mark, a.bold(p.Backend), plain(state))
		if p.Missing != "" {
			a.wrap(&b, "    ", p.Missing, same)
		}
		if p.Fix != "" {
			a.wrap(&b, "    ", "to get it: "+p.Fix, a.faint)
		}
		for _, l := range p.Layers {
			name := strings.ReplaceAll(l.Name, "_", " ")
			by, style := l.By, a.faint
			if !l.Enforced {
				by, style = strings.TrimSuffix("not enforced: "+l.By, ": "), a.red
			}
			var text strings.Builder
			a.wrap(&text, layerIndent, by, style)
			fmt.Fprintf(&b, "    %-18s %s", name, strings.TrimPrefix(text.String(), layerIndent))
			if l.Fix != "" {
				a.wrap(&b, layerIndent, l.Fix, a.faint)
			}
		}
	}
	fmt.Fprint(a.stdout, b.String())
}

func (a *app) sandboxRunCommand() *cobra.Command {
	var in []string
	var backend, out string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARGS]",
		Short: "Run a command of this machine in the sandbox",
		Long: `Run a command of this machine in the sandbox that scripts of skills have, to see
what they see: no network, no files of yours, an empty /work.`,
		Example: `  loadout sandbox run -- sh -c 'id; ls -la / /work; env'
  loadout sandbox run --in data.csv -- wc -l /work/in/data.csv
  loadout sandbox run --backend bwrap -- python3 -c 'print(open("/etc/passwd").read())'`,
		Args: want(1, -1, "a COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := someTime(cmd, "timeout", timeout); err != nil {
				return err
			}
			flags := map[string]string{}
			if backend != "" {
				flags["sandbox.backend"] = backend
			}
			c, err := a.settings(flags)
			if err != nil {
				return err
			}
			return a.sandboxRun(cmd.Context(), a.backend(c), args, in, out, timeout)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&in, "in", nil, "give it the file or directory at `PATH`, as /work/in/NAME (repeatable)")
	f.StringVar(&out, "out", "", "write what it leaves in /work/out into `DIR`")
	f.StringVar(&backend, "backend", "", "use the back end `NAME`")
	f.DurationVar(&timeout, "timeout", 0, "end it after this `TIME`, as 10s; default 1m")
	complete(cmd, "backend", "native", "bwrap", "container", "landlock", "seatbelt", "process")
	return cmd
}

func (a *app) sandboxRun(ctx context.Context, b sandbox.Backend, args, in []string, out string, timeout time.Duration) error {
	r := loadout.Run{Out: out, Timeout: timeout, Stdin: a.stdin}
	var err error
	if r.Inputs, err = inputsOf(in); err != nil {
		return err
	}
	if err := notFile("out", out); err != nil {
		return err
	}
	if !a.json {
		r.Stdout, r.Stderr = a.stdout, a.stderr
	}
	res, err := loadout.RunCommand(ctx, b, args, r)
	if err != nil {
		return err
	}
	res.Script = args[0]
	err = a.printRan(res, &runFlags{out: out})
	if res.Reason != sandbox.StartFailed {
		return err
	}
	return fail(exitMissing, "name a program of this machine that is in /usr or /bin, or a path in the sandbox; to see what is there: loadout sandbox run -- ls /usr/bin",
		"the command %s cannot be started in the sandbox: %s", quoted(args[0]), strings.TrimPrefix(res.Detail, "start "+args[0]+": "))
}
