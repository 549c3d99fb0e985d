//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/bm25"
)

// minPerThousand is the number of 1,000 skills that must contain a word for the
// word to be listed. See internal/bm25/fit.go.
const minPerThousand = 21

// writeFrequencies writes the table of frequent words for internal/bm25: how many
// of 1,000 skills of the pools contain each word in their names, descriptions or
// the start of their instructions.
func writeFrequencies(ctx context.Context, w io.Writer, pools []string) error {
	c, err := openCorpus(ctx, pools, nil)
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, d := range c.docs {
		body := []rune(d.Body)
		text := d.Name + "\n" + d.Description + "\n" + string(body[:min(len(body), bm25.BodyHead)])
		for _, word := range bm25.SharedWords(text, text) {
			count[word]++
		}
	}
	var lines []string
	for word, n := range count {
		perThousand := n * 1000 / len(c.docs)
		if perThousand >= minPerThousand && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
			lines = append(lines, fmt.Sprintf("%s %d\n", word, perThousand))
		}
	}
	slices.Sort(lines)
	_, err = fmt.Fprintf(w, "# Of 1,000 published skills, the number whose name, description or start of the body contains the word; see bench/search.\n%s", strings.Join(lines, ""))
	return err
}
