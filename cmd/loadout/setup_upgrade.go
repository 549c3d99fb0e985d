package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/release"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
)

// upgradeOutput is the JSON output of upgrade --check.
type upgradeOutput struct {
	State   release.State `json:"state"`
	Version string        `json:"version"`
	Latest  string        `json:"latest,omitempty"` // the latest release, with its date, notes and file for this system
	Date    time.Time     `json:"date,omitzero"`
	Notes   string        `json:"notes,omitempty"`
	URL     string        `json:"url,omitempty"`
	SHA256  string        `json:"sha256,omitempty"`
}

func (a *app) upgradeCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "upgrade --check",
		Short: "Check for a newer version of Loadout",
		Long: `Check the release index (releases.index in the configuration) for a newer version of
Loadout, and exit with status 1 if there is one. If the check fails, the command exits with
another nonzero status. It downloads only the index and installs nothing. Loadout never
checks for new versions on its own.

To update skills, run loadout update.`,
		Example: "  loadout upgrade --check\n  loadout upgrade --check --json",
		Args:    argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return exit.Errorf(exit.Usage, "to check for a newer version: loadout upgrade --check; to install it, use the package manager that installed Loadout",
					"upgrade needs --check: Loadout does not replace itself")
			}
			return a.checkForUpgrade(cmd.Context(), setup.ReadVersion())
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "check for a newer version, and exit with status 1 if there is one")
	return cmd
}

// checkForUpgrade searches the release index for a version newer than v, the
// version of this program. It returns [exit.Reported] if there is one. No other
// error about the index has that exit code.
func (a *app) checkForUpgrade(ctx context.Context, v setup.Version) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	index := c.Releases.Index
	if index == "" {
		return exit.Errorf(exit.Missing, "set releases.index in the configuration, or LOADOUT_RELEASES_INDEX, to the URL of an index; see: loadout config example", "no release index is configured")
	}
	src, err := a.NewFetcher(c).ReadFile(ctx, index, release.MaxSize)
	if err != nil {
		return indexError(err)
	}
	releases, err := release.Parse(src)
	if err != nil {
		return indexError(err)
	}
	latest := releases.Latest(v.Version)
	out := upgradeOutput{State: release.Compare(v.Version, latest), Version: v.Version}
	if latest != nil {
		out.Latest, out.Date, out.Notes = latest.Version, latest.Date, plain(latest.Notes)
		if f := latest.File(v.Platform); f != nil {
			out.URL, out.SHA256 = resolveURL(index, f.URL), f.SHA256
		}
	}
	return a.printUpgrade(out, len(releases.Releases) > 0)
}

const indexHint = "check releases.index; see: loadout config show"

// indexError adds an exit code and a hint to an error about the release index.
// The code differs from that for a newer version.
func indexError(err error) error {
	code, hint, ok := classifyRemoteError(err)
	if !ok || code == exit.Failure {
		code = exit.Missing
	}
	if !ok || code == exit.NotFound || isType[*remote.TooLargeError](err) {
		hint = indexHint
	}
	return exit.Errorf(code, hint, "%w", err)
}

// resolveURL resolves a URL in a release index relative to the URL of the
// index. It returns "" if the result is invalid, or if its scheme is neither
// https nor that of the index.
func resolveURL(index, ref string) string {
	base, err := url.Parse(index)
	if err != nil {
		return ""
	}
	u, err := base.Parse(ref)
	if err != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
		return ""
	}
	u.User = nil
	return plain(u.String())
}

// printUpgrade prints the result. It returns an error if a newer version is
// available. prereleases means that the index contains prereleases but no
// latest release.
func (a *app) printUpgrade(out upgradeOutput, prereleases bool) error {
	switch {
	case a.JSON:
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	case out.Latest == "" && prereleases:
		fmt.Fprintf(a.Stdout, "The index contains only prereleases. This is %s.\n", out.Version)
	case out.Latest == "":
		fmt.Fprintln(a.Stdout, "The index contains no releases.")
	case out.State == release.Current:
		fmt.Fprintf(a.Stdout, "Loadout %s is up to date. The latest release is %s.\n", out.Version, out.Latest)
	default:
		what := "Loadout " + out.Latest + " is available"
		if out.State == release.Unknown {
			what = "The latest release is " + out.Latest
		}
		if !out.Date.IsZero() {
			what += " (" + out.Date.UTC().Format(time.DateOnly) + ")"
		}
		fmt.Fprintf(a.Stdout, "%s. This is %s.\n", what, out.Version)
		var rows [][]string
		for _, row := range [][]string{{"notes", out.Notes}, {"file", out.URL}, {"sha256", out.SHA256}} {
			if row[1] != "" {
				rows = append(rows, row)
			}
		}
		a.PrintTable("  ", rows)
	}
	if out.State != release.Newer {
		return nil
	}
	if !a.Quiet && !a.JSON {
		fmt.Fprintln(a.Stderr, "To upgrade, use the package manager that installed Loadout, or download the file and verify its checksum.")
	}
	return exit.Reported
}
