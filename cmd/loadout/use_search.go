package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/exit"
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
	// Weak is true if the skill probably does not fit the query.
	Weak bool `json:"weak,omitempty"`
	// Source is the argument for loadout add; empty if the skill is installed.
	Source string `json:"source,omitempty"`
}

func (a *app) searchCommand() *cobra.Command {
	limit := 10
	var indexes []string
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search skills by what they do",
		Long: `Find skills that match the words of a task, best match first. The search covers names,
descriptions, tags and the beginning of the instructions. "(weak)" marks skills that
probably do not fit. With --index it covers only
the skills that a site, a hub or a repository offers; install them with loadout add.`,
		Example: `  loadout search fill in a pdf form
  loadout search --index https://example.com release notes
  loadout search --limit 3 "release notes" --json`,
		Args: argCount(1, -1, "search words"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return exit.Errorf(exit.Usage, "use --limit 1 or more", "--limit is %d", limit)
			}
			query := strings.TrimSpace(strings.Join(args, " "))
			if query == "" {
				return exit.Errorf(exit.Usage, "loadout search fill in a pdf form; to list all: loadout list", "no search words given")
			}
			if len(indexes) > 0 {
				return a.searchIndexes(cmd.Context(), indexes, query, limit)
			}
			rt, err := a.OpenRuntime(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			hits, err := rt.Catalog().Search(cmd.Context(), query, catalog.SearchOptions{Limit: limit})
			if err != nil {
				return err
			}
			if err := a.printHits(query, rt.Catalog().Snapshot(), hits); err != nil {
				return err
			}
			return rt.Catalog().Warm(cmd.Context()) // saves the index
		},
	}
	cmd.Flags().StringArrayVar(&indexes, "index", nil, "search the skills at `URL` or owner/repo instead of the local ones (repeatable)")
	cmd.Flags().IntVar(&limit, "limit", limit, "show at most `N` results")
	a.profileFlag(cmd.Flags())
	return cmd
}

func (a *app) printHits(query string, snap *catalog.Snapshot, hits []catalog.Hit) error {
	if a.JSON {
		out := searchOutput{Query: query, Hits: []searchHit{}}
		for _, h := range hits {
			out.Hits = append(out.Hits, searchHit{Name: h.Name, Origin: h.Origin, Score: h.Score, Description: h.Description, Weak: h.Weak()})
		}
		return a.PrintJSON(out)
	}
	switch {
	case snap.Disabled:
		fmt.Fprintln(a.Stdout, "Skills are disabled (skills.enabled: false). See: loadout config show")
		return nil
	case len(hits) == 0:
		fmt.Fprintf(a.Stdout, "No matching skills. Try other words, or list all: loadout list%s\n", a.SkillFlags())
		return nil
	}
	var rows [][]string
	origins := map[string]bool{}
	for _, h := range hits {
		origins[h.Origin] = true
	}
	for _, h := range hits {
		row := []string{h.Name, h.Origin, markWeak(h.Weak(), describe(h.Description))}
		if len(origins) == 1 && a.TerminalWidth() > 0 {
			row = slices.Delete(row, 1, 2)
		}
		rows = append(rows, row)
	}
	a.PrintTable("", rows)
	a.noteWeak(!slices.ContainsFunc(hits, func(h catalog.Hit) bool { return !h.Weak() }))
	return nil
}

// markWeak returns the description of a hit, marked if the hit is weak.
func markWeak(weak bool, description string) string {
	if weak {
		return "(weak) " + description
	}
	return description
}

// noteWeak reports that all hits of a search are weak.
func (a *app) noteWeak(all bool) {
	if all && !a.Quiet {
		fmt.Fprintln(a.Stderr, "No skill clearly fits: the skills share few words with the query. Try other words.")
	}
}
