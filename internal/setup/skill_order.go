package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/usage"
)

// Lists of skills that are too long for a client begin with the skills that the
// user uses and those that fit the files of the project. The order is computed once
// a day for each project and set of skills, and stored, so that prompt caches of
// models stay valid.

const (
	orderVersion  = 1
	maxOrderBytes = 1 << 20
	maxOrders     = 50
	maxOrderSets  = 8                   // sets of skills for each project
	maxOrderKeys  = 100                 // keys in each order
	orderUseSpan  = 90 * 24 * time.Hour // older uses do not count
)

// orderFile is the content of the file that stores skill orders, newest last.
type orderFile struct {
	Version int          `json:"version"`
	Orders  []skillOrder `json:"projects"`
}

type skillOrder struct {
	Project string   `json:"project"` // working directory
	Set     string   `json:"set"`     // digest of the skills; "" in files of older programs
	Day     string   `json:"day"`     // day in local time
	Skills  []string `json:"skills"`  // keys of the skills, in order
}

// SkillOrder returns a function that returns the keys of the skills that come
// first in long lists; see [mcpserver.Options]. The function does not fail: if
// there is no state directory or its file cannot be read, the order is only
// kept in memory.
func (s *Setup) SkillOrder(ctx context.Context, c *config.Config, snapshot func() *catalog.Snapshot) func() []string {
	var mu sync.Mutex
	var last skillOrder
	var of *catalog.Snapshot
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		snap, day := snapshot(), time.Now().Format(time.DateOnly)
		if of == snap && last.Day == day {
			return last.Skills
		}
		o := skillOrder{Project: s.ConfigInput().WorkDir, Set: digestOfSet(snap), Day: day}
		if !o.sameKey(&last) {
			if err := s.storedOrder(ctx, &o, func() []string { return s.computeOrder(c, snap, o.Project) }); err != nil {
				s.Note("%v", err)
			}
			last = o
		}
		of = snap
		return last.Skills
	}
}

// digestOfSet returns a digest of the keys of the skills in a snapshot that models
// may load.
func digestOfSet(snap *catalog.Snapshot) string {
	var keys []string
	for _, e := range snap.ForModel() {
		keys = append(keys, e.Key())
	}
	slices.Sort(keys)
	var text []byte
	for _, key := range keys {
		text = append(strconv.AppendQuote(text, key), '\n')
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// storedOrder sets the skills of o to the stored order. If there is none, it
// computes and stores the order. If it returns an error, the order was computed
// but not stored.
func (s *Setup) storedOrder(ctx context.Context, o *skillOrder, compute func() []string) error {
	dir := s.StateDir()
	if dir == "" {
		o.Skills = compute()
		return nil
	}
	file := privatefile.New(filepath.Join(dir, "skill-order.json"), maxOrderBytes)
	data, readErr := file.Read()
	if errors.Is(readErr, fs.ErrNotExist) {
		readErr = nil
	} else if readErr == nil {
		f, err := decodeOrder(data)
		if err != nil {
			o.Skills = compute()
			return fmt.Errorf("read stored order of skills: %s: %w", file.Path(), err)
		}
		if f.find(o) {
			return nil
		}
	}
	computed := compute()
	o.Skills = computed
	err := file.Renew(ctx, func(old []byte) ([]byte, error) {
		f := orderFile{Version: orderVersion}
		if old != nil {
			var err error
			if f, err = decodeOrder(old); err != nil {
				return nil, err
			}
			if f.find(o) { // another process was faster
				return old, nil
			}
		}
		return f.with(*o)
	})
	switch {
	case readErr != nil && err == nil:
		s.Note("replaced the stored order of skills, which couldn't be read: %v", readErr)
	case readErr != nil:
		return fmt.Errorf("read stored order of skills: %w", readErr)
	case err != nil:
		return fmt.Errorf("store order of skills: %w", err)
	}
	return nil
}

// sameKey reports whether two orders are for the same project, skills and day.
func (o *skillOrder) sameKey(other *skillOrder) bool {
	return o.Project == other.Project && o.Set == other.Set && o.Day == other.Day
}

// find sets o.Skills from the stored order for the same project, skills and
// day. It returns false if there is none.
func (f *orderFile) find(o *skillOrder) bool {
	i := slices.IndexFunc(f.Orders, func(p skillOrder) bool { return p.sameKey(o) })
	if i >= 0 {
		o.Skills = f.Orders[i].Skills
	}
	return i >= 0
}

// with returns the content of the file after o is added. It drops the project's
// orders for other days, and the oldest orders if there are too many.
func (f *orderFile) with(o skillOrder) ([]byte, error) {
	orders := slices.DeleteFunc(f.Orders, func(p skillOrder) bool {
		return p.Project == o.Project && (p.Day != o.Day || p.Set == "")
	})
	sets := 1
	for i := len(orders) - 1; i >= 0; i-- {
		if orders[i].Project != o.Project {
			continue
		}
		if sets++; sets > maxOrderSets {
			orders = slices.Delete(orders, i, i+1)
		}
	}
	orders = append(orders, o)
	f.Orders = orders[max(0, len(orders)-maxOrders):]
	for {
		data, err := json.Marshal(f)
		if err != nil || len(data) <= maxOrderBytes || len(f.Orders) == 1 {
			return data, err
		}
		f.Orders = f.Orders[1:]
	}
}

// decodeOrder decodes the file. For a damaged file, it returns no orders,
// because they can be recomputed. For a file written by a newer version, it
// returns an error.
func decodeOrder(data []byte) (orderFile, error) {
	var f orderFile
	switch err := json.Unmarshal(data, &f); {
	case f.Version > orderVersion:
		return f, privatefile.CheckVersion(data, orderVersion)
	case err != nil || f.Version != orderVersion:
		return orderFile{Version: orderVersion}, nil
	}
	return f, nil
}

// computeOrder returns the keys of the skills that the user used, sorted by the
// weight of their uses, followed by those that fit the files of the project.
func (s *Setup) computeOrder(c *config.Config, snap *catalog.Snapshot, project string) []string {
	now := time.Now()
	used := map[string]float64{}
	if path := s.UsageFile(); path != "" && c.Usage.Enabled {
		report, err := usage.Read(usage.Options{Path: path, Since: now.Add(-orderUseSpan)})
		if err != nil {
			s.Note("couldn't read how often skills were used: %v", err)
		} else {
			for _, u := range report.Skills {
				used[u.Key] = useWeight(u.Counts, now)
			}
		}
	}
	skills := snap.ForModel()
	fits := projectFit(skills, projectWords(project))
	skills = slices.DeleteFunc(skills, func(e *catalog.Entry) bool { return used[e.Key()] == 0 && fits[e] == 0 })
	slices.SortFunc(skills, func(a, b *catalog.Entry) int {
		return cmp.Or(cmp.Compare(used[b.Key()], used[a.Key()]), cmp.Compare(fits[b], fits[a]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key(), b.Key()))
	})
	keys := make([]string, min(len(skills), maxOrderKeys))
	for i := range keys {
		keys[i] = skills[i].Key()
	}
	return keys
}

// useWeight returns the weight of a skill's uses, which halves for every 30
// days since the last use.
func useWeight(c usage.Counts, now time.Time) float64 {
	days := max(now.Sub(c.Last).Hours()/24, 0)
	return float64(max(c.Worked(), 0)) * math.Exp2(-days/30)
}

// fileWords maps words in file names, such as extensions, to the words that
// skills use for such files.
var fileWords = map[string]string{
	"py": "python", "js": "javascript", "ts": "typescript", "rs": "rust", "rb": "ruby", "cs": "csharp", "kt": "kotlin", "md": "markdown", "sh": "shell", "tf": "terraform",
	"xlsx": "excel", "docx": "word", "pptx": "powerpoint", "mod": "go", "dockerfile": "docker", "makefile": "make", "ipynb": "jupyter", "yml": "yaml",
}

// projectWords returns the words in the names of at most 1,000 files directly
// in a directory, and the words that skills use for such files.
func projectWords(dir string) map[string]bool {
	words := map[string]bool{}
	d, err := os.Open(dir)
	if err != nil {
		return words
	}
	defer d.Close()
	names, _ := d.Readdirnames(1000) // what could be read counts
	for _, name := range names {
		for _, w := range splitWords(name) {
			words[w] = true
			if other := fileWords[w]; other != "" {
				words[other] = true
			}
		}
	}
	return words
}

// projectFit returns, for each skill, how many of the project's words occur in
// its name, tags and description. Words that occur in more than a tenth of the
// skills do not count.
func projectFit(skills []*catalog.Entry, project map[string]bool) map[*catalog.Entry]int {
	fits := map[*catalog.Entry]int{}
	if len(project) == 0 {
		return fits
	}
	having := map[string][]*catalog.Entry{}
	for _, e := range skills {
		own := map[string]bool{}
		for _, w := range splitWords(e.Name + " " + strings.Join(e.Tags, " ") + " " + e.Description) {
			own[w] = project[w]
		}
		for w := range maps.Keys(own) {
			if own[w] {
				having[w] = append(having[w], e)
			}
		}
	}
	for _, with := range having {
		if len(with) <= max(1, len(skills)/10) {
			for _, e := range with {
				fits[e]++
			}
		}
	}
	return fits
}

// splitWords returns the words in text that have at least two letters or
// digits, in lower case.
func splitWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(w string) bool { return len(w) < 2 })
}
