package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
)

// indexedSkill is a skill listed in a published index.
type indexedSkill struct {
	remote.Skill
	origin string // host of the index, or its label
	source string // argument for loadout add
}

// searchIndexes searches published indexes and other sources. It does not
// install or load skills.
func (a *app) searchIndexes(ctx context.Context, locations []string, query string, limit int) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	from := a.NewFetcher(c)
	var all []indexedSkill
	var failed error
	for _, text := range locations {
		found, err := a.readIndex(ctx, from, text)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && len(locations) == 1:
			return err
		case err != nil: // continue with the other sources
			a.Note("%s: %v", plain(text), err)
			failed = exit.Reported
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
		description := plain(s.Description)
		out.Hits = append(out.Hits, searchHit{Name: s.Name, Origin: s.origin, Score: h.Score, Description: description, Weak: bm25.IsWeak(h.Fit), Source: s.source})
		rows = append(rows, []string{s.Name, s.origin, markWeak(bm25.IsWeak(h.Fit), description)})
	}
	switch {
	case a.JSON:
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	case len(rows) == 0:
		fmt.Fprintf(a.Stdout, "No matching skills among %s. Try other words.\n", console.Pluralize(len(all), "skill"))
	default:
		a.PrintTable("", rows)
		a.noteWeak(!slices.ContainsFunc(out.Hits, func(h searchHit) bool { return !h.Weak }))
		if !a.Quiet {
			fmt.Fprintf(a.Stderr, "These skills are not installed. To install the first: loadout add %s --skill %s\n", console.ShellQuote(out.Hits[0].Source), console.ShellQuote(out.Hits[0].Name))
		}
	}
	return failed
}

func (a *app) readIndex(ctx context.Context, from setup.Fetcher, text string) ([]indexedSkill, error) {
	at, err := setup.ParseLocation(text)
	if err != nil {
		return nil, err
	}
	offer, err := from.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer offer.Close()
	a.printUnavailable(offer.Problems)
	out := make([]indexedSkill, 0, len(offer.Skills))
	for _, s := range offer.Skills {
		out = append(out, indexedSkill{s, locationLabel(at), at.String()})
	}
	return out, nil
}

// locationLabel returns a location's host, or its path if it is local.
func locationLabel(at remote.Location) string {
	if u, err := url.Parse(at.URL); err == nil && u.Host != "" && at.Kind != remote.Local {
		if at.Kind == remote.Git {
			return u.Host + u.Path
		}
		return u.Host
	}
	return at.URL
}
