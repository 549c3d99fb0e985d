package install

import (
	"fmt"
	"hash/maphash"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

const (
	// maxKnown is the maximum number of skills with which a new one is compared.
	maxKnown = 500
	// minNameLength is the minimum length of names that are compared. One letter
	// is a large part of a shorter name.
	minNameLength = 5
	// shingleWords is the number of words in a shingle.
	shingleWords = 5
	// minShingles is the minimum number of shingles of texts that are compared.
	minShingles = 20
	// copyShare is the share of common shingles from which a text is a copy.
	copyShare = 0.7
)

// knownSkill is an installed or bundled skill with which a new one is compared.
type knownSkill struct {
	name, publisher string
	shingles        map[uint64]bool
}

// publisherOf returns the host and owner of a repository, or the host of another
// source. It returns "" for a local directory.
func publisherOf(at remote.Location) string {
	u, err := url.Parse(at.CanonicalURL())
	if at.Kind == remote.Local || err != nil || u.Host == "" {
		return ""
	}
	if at.Kind != remote.Git {
		return u.Host
	}
	owner, _, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	return u.Host + "/" + owner
}

// addResemblances adds findings if a new skill resembles an installed or bundled
// skill of another publisher. Skills of local directories are not compared,
// because their publisher is unknown.
func (p *Plan) addResemblances(st *Step) {
	from := publisherOf(st.From)
	if from == "" || st.State != StateNew || st.ScanErr != nil {
		return
	}
	own := textShingles(st.files)
	for _, k := range p.knownSkills() {
		if k.publisher == from {
			continue
		}
		of := fmt.Sprintf("%s of %s", k.name, k.publisher)
		if isNearName(st.SkillName, k.name) {
			st.Report.Add(scan.NewFinding("name-similar", scan.Medium, skill.FileName, of))
		}
		if share := commonShare(own, k.shingles); share >= copyShare {
			st.Report.Add(scan.NewFinding("skill-copy", scan.Medium, skill.FileName, fmt.Sprintf("%s: %.0f %% of the text", of, 100*share)))
		}
	}
}

// knownSkills returns the installed skills whose publisher is known, and the
// bundled skills. It reads them on first use.
func (p *Plan) knownSkills() []knownSkill {
	if p.known != nil {
		return p.known
	}
	p.known = []knownSkill{}
	for _, name := range bundled.Names() {
		if sub, err := fs.Sub(bundled.FS(), name); err == nil {
			p.known = append(p.known, knownSkill{name, "Loadout", textShingles(sub)})
		}
	}
	for _, name := range p.lock.Names() {
		publisher := publisherOf(p.lock.Skills[name].From)
		if publisher == "" || len(p.known) >= maxKnown {
			continue
		}
		p.known = append(p.known, knownSkill{name, publisher, textShingles(os.DirFS(filepath.Join(p.dir.Path(), name)))})
	}
	return p.known
}

// isNearName reports whether two names are equal, or differ by one letter, by two
// swapped letters, or only by letters that look the same.
func isNearName(a, b string) bool {
	if len(b) < minNameLength {
		return false
	}
	x, y := editdistance.Normalize(a), editdistance.Normalize(b)
	return untrusted.Skeleton(a) == untrusted.Skeleton(b) || editdistance.Distance(x, y, 1) <= 1 || isSwapped(x, y)
}

// isSwapped reports whether swapping two adjacent letters of a yields b.
func isSwapped(a, b []rune) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && slices.Equal(a[i+2:], b[i+2:])
}

// seed is the seed of all shingles.
var seed = maphash.MakeSeed()

// textShingles returns the hashes of all sequences of words in a skill's
// instructions. It returns nil if they cannot be read.
func textShingles(files fs.FS) map[uint64]bool {
	s, ds, err := skill.Parse(files, "")
	if err != nil || s == nil || !ds.Loads() {
		return nil
	}
	words := strings.FieldsFunc(strings.ToLower(s.Instructions), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	out := map[uint64]bool{}
	for i := range len(words) - shingleWords + 1 {
		out[maphash.String(seed, strings.Join(words[i:i+shingleWords], " "))] = true
	}
	return out
}

// commonShare returns the number of common shingles, divided by that of the
// shorter text. It returns 0 if a text is too short to compare.
func commonShare(a, b map[uint64]bool) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < minShingles {
		return 0
	}
	n := 0
	for h := range a {
		if b[h] {
			n++
		}
	}
	return float64(n) / float64(len(a))
}
