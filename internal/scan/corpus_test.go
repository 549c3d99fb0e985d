package scan_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/loadout-dev/loadout/internal/scan"
)

// corpusClasses are the classes of attacks in testdata/skills.txtar.
var corpusClasses = map[string]string{
	"A": "social engineering in prose", "B": "commands in frontmatter, hooks and package.json", "C": "notebooks and nested skills",
	"D": "keys and credential files to the network", "E": "code that stays, destroys or opens a shell", "F": "injected instructions",
}

// The skills in testdata/skills.txtar were used to develop the rules, so the recall says
// that none of them was lost, not how good the scanner is with others.
func TestCorpus(t *testing.T) {
	type count struct{ high, all int }
	counts := map[string]*count{}
	for name, files := range readCorpus(t) {
		kind, class, _ := strings.Cut(name, "/")
		class, folder, _ := strings.Cut(class, "/")
		r, err := scan.Skill(t.Context(), files, folder)
		if err != nil {
			t.Fatal(err)
		}
		key := kind
		if kind == "malicious" {
			key = class
		}
		if counts[key] == nil {
			counts[key] = &count{}
		}
		counts[key].all++
		w, _ := r.Worst()
		if w == scan.High {
			counts[key].high++
		}
		switch {
		case kind == "malicious" && w < scan.High:
			t.Errorf("%s has no high finding", name)
		case kind == "benign" && w == scan.High:
			t.Errorf("%s has a high finding: %+v", name, r.Findings[0])
		}
	}
	for class, what := range corpusClasses {
		c := counts[class]
		if c == nil {
			t.Errorf("class %s (%s) has no skills", class, what)
			continue
		}
		low, high := wilson(c.high, c.all)
		t.Logf("%s: recall %d of %d, %.2f to %.2f: %s", class, c.high, c.all, low, high, what)
	}
	c := counts["benign"]
	low, high := wilson(c.high, c.all)
	t.Logf("false positives %d of %d, %.2f to %.2f", c.high, c.all, low, high)
}

// readCorpus returns the skills of the corpus.
func readCorpus(t *testing.T) map[string]fstest.MapFS {
	t.Helper()
	data, err := os.ReadFile("testdata/skills.txtar")
	if err != nil {
		t.Fatal(err)
	}
	escaped := regexp.MustCompile(`\\u\{([0-9a-f]+)\}`)
	skills := map[string]fstest.MapFS{}
	for _, f := range txtar.Parse(data).Files {
		parts := strings.SplitN(f.Name, "/", 4)
		name := strings.Join(parts[:3], "/")
		if skills[name] == nil {
			skills[name] = fstest.MapFS{}
		}
		text := escaped.ReplaceAllStringFunc(string(f.Data), func(s string) string {
			n, err := strconv.ParseInt(s[3:len(s)-1], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return string(rune(n))
		})
		skills[name][parts[3]] = fileOf(text)
	}
	return skills
}

// wilson returns the interval of a share with a confidence of 95 %.
func wilson(hits, all int) (low, high float64) {
	const z = 1.96
	n, p := float64(all), float64(hits)/float64(all)
	middle, spread := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (middle - spread) / (1 + z*z/n), (middle + spread) / (1 + z*z/n)
}
