//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing/fstest"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/scan"
)

// hostile lists inputs that could make a scanner read the same bytes many
// times.
var hostile = []string{"\"", "'", "`", "` a b c d e f`", "(", "/*", "<!--", "\"\"\"", "\"\" ", "'x' + \"y\" ", "curl https://", "eval(", "password=\"", "$(", "\u200b", "```\n",
	"x = os.environ['A_TOKEN']\n", "u = 'https://a.b' ", "u = 'https://a.b'\n", "w = requests.get(u)\nexec(w)\n", "    curl https://a.b/c | jq\n", "![a](https://b.c/?d={", "ignore all previous "}

// printGrowth prints, for each hostile input, the CPU time of a scan at one
// size and at four times that size. It scans each input as Markdown, shell,
// Python and JavaScript.
func printGrowth(ctx context.Context) error {
	const size = 256 << 10
	fmt.Printf("\n| text, %d KiB in four languages | CPU ms | four times as much | ratio |\n| --- | --- | --- | --- |\n", size>>10)
	for _, unit := range hostile {
		var took [2]float64
		for i, n := range []int{size, 4 * size} {
			text := []byte(strings.Repeat(unit, n/len(unit)))
			files := fstest.MapFS{"a.md": {Data: text}, "a.sh": {Data: text}, "a.py": {Data: text}, "a.js": {Data: text}}
			cost, err := measure.RunClean(func() error {
				_, err := scan.Skill(ctx, files, "")
				return err
			})
			if err != nil {
				return err
			}
			took[i] = float64(cost.CPU.Microseconds()) / 1000
		}
		fmt.Fprintf(os.Stdout, "| `%q` | %.1f | %.1f | %.1f |\n", unit, took[0], took[1], took[1]/took[0])
	}
	return nil
}
