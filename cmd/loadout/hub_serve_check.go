package main

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/hub"
)

// hubReport is the JSON output of serve --check.
type hubReport struct {
	OK       bool        `json:"ok"`
	Skills   int64       `json:"skills"`
	Versions int64       `json:"versions"`
	Files    int64       `json:"files"`
	Bytes    int64       `json:"bytes"`
	Orphans  orphanFiles `json:"orphans"`
	Problems []string    `json:"problems"`
}

// orphanFiles counts the files that no skill version uses.
type orphanFiles struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// checkHub checks all data stored by a hub and prints a report.
func (a *app) checkHub(ctx context.Context, c *config.Config) error {
	o, err := a.hubLocation(c)
	if err != nil {
		return err
	}
	done := a.ShowProgress("reading the hub")
	r, err := hub.Check(ctx, o)
	done()
	if err != nil {
		return classifyHubError(err)
	}
	out := hubReport{OK: len(r.Problems) == 0, Skills: r.Skills, Versions: r.Versions, Files: r.Files, Bytes: r.Bytes,
		Orphans: orphanFiles{r.Orphans.Files, r.Orphans.Bytes}, Problems: append([]string{}, r.Problems...)}
	if a.JSON {
		err = a.PrintJSON(out)
	} else {
		a.printReport(out)
	}
	if err == nil && !out.OK {
		err = exit.Reported
	}
	return err
}

func (a *app) printReport(r hubReport) {
	fmt.Fprintf(a.Stdout, "%s in %s, with %s of %s.\n", console.Pluralize(int(r.Skills), "skill"), console.Pluralize(int(r.Versions), "version"), console.Pluralize(int(r.Files), "file"), console.FormatSize(r.Bytes))
	if r.Orphans.Files > 0 {
		fmt.Fprintf(a.Stdout, "%s of %s are not used by any version; a running hub deletes them after a day.\n", console.Pluralize(int(r.Orphans.Files), "file"), console.FormatSize(r.Orphans.Bytes))
	}
	for _, p := range r.Problems {
		fmt.Fprintln(a.Stdout, a.Red("✗")+" "+plain(p))
	}
	switch {
	case r.OK:
		fmt.Fprintln(a.Stdout, "No problems found.")
	default:
		fmt.Fprintln(a.Stdout, "\nRestore a backup: loadout restore FILE --force; or upload the damaged skills again.")
	}
}
