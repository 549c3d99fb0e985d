package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// indexed is a skill that a published index offers.
type indexed struct {
	remote.Skill
	origin string // the host, or what stands for it
	source string // as loadout add takes it
}

// searchIndexes ranks what published indexes and other places offer. Nothing of it is
// loaded: it is for loadout add.
func (a *app) searchIndexes(ctx context.Context, places []string, query string, limit int) error {
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	from := a.fetcher(c)
	var all []indexed
	var failed error
	for _, text := range places {
		found, err := a.readIndex(ctx, from, text)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && len(places) == 1:
			return err
		case err != nil: // the others go on
			a.note("%s: %v", plain(text), err)
			failed = errFound
		}
		all = append(all, found...)
	}
	index := bm25.New(func(yield func(bm25.Doc) bool) {
		for _, s := range all {
			if !yield(bm25.Doc{Name: s.Name, Description: s.Description}) {
				return
			}
		}
	})
	out := searchOutput{Query: query, Hits: []searchHit{}}
	var rows [][]string
	for _, h := range index.Search(query, limit) {
		s := all[h.Doc]
		description := skill.OneLine(s.Description)
		out.Hits = append(out.Hits, searchHit{Name: s.Name, Origin: s.origin, Score: h.Score, Description: description, Source: s.source})
		rows = append(rows, []string{s.Name, s.origin, description})
	}
	switch {
	case a.json:
		if err := a.printJSON(out); err != nil {
			return err
		}
	case len(rows) == 0:
		fmt.Fprintf(a.stdout, "No skill fits, of %s there. Try other words.\n", counted(len(all), "skill"))
	default:
		a.table("", rows)
		if !a.quiet {
			fmt.Fprintf(a.stderr, "These are there, not here. To get the first: loadout add %s --skill %s\n", quoted(out.Hits[0].Source), quoted(out.Hits[0].Name))
		}
	}
	return failed
}

func (a *app) readIndex(ctx context.Context, from fetcher, text string) ([]indexed, error) {
	at, err := locate(text)
	if err != nil {
		return nil, err
	}
	offer, err := from.look(ctx, at)
	if err != nil {
		return nil, err
	}
	defer offer.Close()
	a.notHad(offer.Problems)
	out := make([]indexed, 0, len(offer.Skills))
	for _, s := range offer.Skills {
		out = append(out, indexed{s, placeLabel(at), at.String()})
	}
	return out, nil
}

// placeLabel is the host of a place, or its path on this machine.
func placeLabel(at remote.Location) string {
	if u, err := url.Parse(at.URL); err == nil && u.Host != "" && at.Kind != remote.Local {
		if at.Kind == remote.Git {
			return u.Host + u.Path
		}
		return u.Host
	}
	return at.URL
}
