package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
)

type searchOutput struct {
	Query string      `json:"query"`
	Hits  []searchHit `json:"hits"`
}

type searchHit struct {
	Name        string  `json:"name"`
	Origin      string  `json:"origin"`
	Score       float64 `json:"score"`
	Description string  `json:"description"`
	// Source is what loadout add gets it from, where it is not here.
	Source string `json:"source,omitempty"`
}

func (a *app) searchCommand() *cobra.Command {
	limit := 10
	var indexes []string
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find skills by what they are for",
		Long: `Find the skills that fit words of a task, best first. The words are looked for
in names, descriptions, tags and the beginning of the instructions. With --index they
are looked for in what a site, a hub or a repository offers, and only there: what is
found can be got by loadout add, and is not loaded before.`,
		Example: `  loadout search fill in a pdf form
  loadout search --index https://example.com release notes
  loadout search --limit 3 "release notes" --json`,
		Args: want(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return fail(exitUsage, "give --limit a number of at least 1", "--limit is %d", limit)
			}
			query := strings.TrimSpace(strings.Join(args, " "))
			if query == "" {
				return fail(exitUsage, "as: loadout search fill in a pdf form; to see all: loadout list", "search needs words to look for")
			}
			if len(indexes) > 0 {
				return a.searchIndexes(cmd.Context(), indexes, query, limit)
			}
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			hits, err := rt.Catalog().Search(cmd.Context(), query, catalog.SearchOptions{Limit: limit})
			if err != nil {
				return err
			}
			return a.printHits(query, rt.Catalog().Snapshot(), hits)
		},
	}
	cmd.Flags().StringArrayVar(&indexes, "index", nil, "look at what `URL` offers, or owner/repo, and not here (repeatable)")
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`")
	a.profileFlag(cmd.Flags())
	return cmd
}

func (a *app) printHits(query string, snap *catalog.Snapshot, hits []catalog.Hit) error {
	if a.json {
		out := searchOutput{Query: query, Hits: []searchHit{}}
		for _, h := range hits {
			out.Hits = append(out.Hits, searchHit{Name: h.Name, Origin: h.Origin, Score: h.Score, Description: h.Description})
		}
		return a.printJSON(out)
	}
	switch {
	case snap.Disabled:
		fmt.Fprintln(a.stdout, "Skills are switched off (skills.enabled: false). See: loadout config show")
		return nil
	case len(hits) == 0:
		fmt.Fprintf(a.stdout, "No skill fits. Try other words, or see all: loadout list%s\n", a.flags())
		return nil
	}
	var rows [][]string
	origins := map[string]bool{}
	for _, h := range hits {
		origins[h.Origin] = true
	}
	for _, h := range hits {
		row := []string{h.Name, h.Origin, h.Description}
		if len(origins) == 1 && a.width() > 0 {
			row = []string{h.Name, h.Description}
		}
		rows = append(rows, row)
	}
	a.table("", rows)
	return nil
}
