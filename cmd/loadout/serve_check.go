package main

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub"
)

// hubReport is what serve --check prints.
type hubReport struct {
	OK       bool        `json:"ok"`
	Skills   int64       `json:"skills"`
	Versions int64       `json:"versions"`
	Files    int64       `json:"files"`
	Bytes    int64       `json:"bytes"`
	Orphans  orphanFiles `json:"orphans"`
	Problems []string    `json:"problems"`
}

// orphanFiles are files that no version names.
type orphanFiles struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// checkHub reads through all that a hub keeps.
func (a *app) checkHub(ctx context.Context, c *config.Config) error {
	o, err := a.hubPlace(c)
	if err != nil {
		return err
	}
	done := a.progress("reading the hub")
	r, err := hub.Check(ctx, o)
	done()
	if err != nil {
		return hubError(err)
	}
	out := hubReport{OK: len(r.Problems) == 0, Skills: r.Skills, Versions: r.Versions, Files: r.Files, Bytes: r.Bytes,
		Orphans: orphanFiles{r.Orphans.Files, r.Orphans.Bytes}, Problems: append([]string{}, r.Problems...)}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printReport(out)
	}
	if err == nil && !out.OK {
		err = errFound
	}
	return err
}

func (a *app) printReport(r hubReport) {
	fmt.Fprintf(a.stdout, "%s in %s, with %s of %s.\n", counted(int(r.Skills), "skill"), counted(int(r.Versions), "version"), counted(int(r.Files), "file"), sized(r.Bytes))
	if r.Orphans.Files > 0 {
		fmt.Fprintf(a.stdout, "%s of %s: no version names them; a hub that runs removes them a day later.\n", counted(int(r.Orphans.Files), "file"), sized(r.Orphans.Bytes))
	}
	for _, p := range r.Problems {
		fmt.Fprintln(a.stdout, a.red("✗")+" "+plain(p))
	}
	switch {
	case r.OK:
		fmt.Fprintln(a.stdout, "All is in order.")
	default:
		fmt.Fprintln(a.stdout, "\nPut a backup in its place: loadout restore FILE --force; or upload what is damaged anew.")
	}
}
