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
}

func (a *app) searchCommand() *cobra.Command {
	limit := 10
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find skills by what they are for",
		Example: `  loadout search fill in a pdf form
  loadout search --limit 3 "release notes" --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return fail(exitUsage, "give --limit a number of at least 1", "--limit is %d", limit)
			}
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			query := strings.Join(args, " ")
			hits, err := rt.Catalog().Search(cmd.Context(), query, catalog.SearchOptions{Limit: limit})
			if err != nil {
				return err
			}
			return a.printHits(query, hits)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most this many")
	return cmd
}

func (a *app) printHits(query string, hits []catalog.Hit) error {
	if a.json {
		out := searchOutput{Query: query, Hits: []searchHit{}}
		for _, h := range hits {
			out.Hits = append(out.Hits, searchHit{h.Name, h.Origin, h.Score, h.Description})
		}
		return a.printJSON(out)
	}
	if len(hits) == 0 {
		fmt.Fprintln(a.stdout, "No skill fits. Try other words, or see all: loadout list")
		return nil
	}
	var rows [][]string
	for _, h := range hits {
		rows = append(rows, []string{h.Name, h.Origin, h.Description})
	}
	a.table(rows)
	return nil
}
