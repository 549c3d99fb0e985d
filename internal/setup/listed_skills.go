package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// listedSkills maps each skill directory of a project to the skills that it had
// when it was first listed and those confirmed since.
type listedSkills map[string]*listedSet

// listedSet holds the skills in one directory, keyed by [listedKey].
type listedSet struct {
	skills     map[string]bool
	incomplete bool      // see listedDir
	unread     bool      // see listedDir
	used       time.Time // see listedDir
}

// add adds skills to the set of a directory.
func (l listedSkills) add(dir string, skills []string) {
	if l[dir] == nil {
		l[dir] = &listedSet{skills: make(map[string]bool, len(skills)), used: time.Now()}
	}
	for _, skill := range skills {
		l[dir].skills[skill] = true
	}
}

// hasProject reports whether the root of a project is listed. Loadout lists the
// root even if it starts in a subdirectory.
func (l listedSkills) hasProject(root string) bool {
	set := l[filepath.Join(root, "skills")]
	return set != nil && !set.unread
}

// Limits on the file. A project determines how many directories and skills it
// has, and how long their names are, so it may use only part of the file. A
// skill that is not in the file is pending if the file contains its directory.
const (
	listedVersion         = 2
	maxListedBytes        = 4 << 20
	maxListedProjectBytes = maxListedBytes / 8  // bytes of all directories that are added at once
	maxListedDirBytes     = maxListedBytes / 16 // bytes of the skills in a directory
	maxListedSkills       = 10_000              // skills in one directory
	maxListedDirs         = 10_000              // directories; the least recently used ones are removed, and listed again at their next use

	// listedUseInterval is the minimum time between updates of the time of the
	// last use, so that most commands need not write the file.
	listedUseInterval = 24 * time.Hour
)

// listedFile is the content of the file that stores [listedSkills].
type listedFile struct {
	Version int         `json:"version"`
	Dirs    []listedDir `json:"dirs"`
}

type listedDir struct {
	Dir    string    `json:"dir"`
	Listed time.Time `json:"listed"`        // time of the first listing
	Used   time.Time `json:"used,omitzero"` // time of the last use, accurate to listedUseInterval
	Skills []string  `json:"skills"`
	// Incomplete means that the directory may have had more skills: too many,
	// or they were removed from the file to make room for other directories.
	Incomplete bool `json:"incomplete,omitempty"`
	// Unread means that the directory could not be listed completely when its
	// project was first listed. Older versions of the program ignore the field
	// and treat the skills in the directory as pending.
	Unread bool `json:"unread,omitempty"`
}

// listedPath returns the path of the file that stores listed skills, or "" if
// there is no state directory.
func (s *Setup) listedPath() string {
	if d := s.StateDir(); d != "" {
		return filepath.Join(d, "project-skills.json")
	}
	return ""
}

// readListedSkills reads the listed skills from their file. If the file does
// not exist, it returns no skills.
func (s *Setup) readListedSkills() (listedSkills, error) {
	path := s.listedPath()
	if path == "" {
		return listedSkills{}, nil
	}
	data, err := privatefile.New(path, maxListedBytes).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return listedSkills{}, nil
	}
	if err != nil {
		return listedSkills{}, err
	}
	f, err := decodeListed(data)
	if err != nil {
		return listedSkills{}, exit.Errorf(exit.Failure, "to begin a new list, remove the file", "%s: %w", path, err)
	}
	return f.listed(), nil
}

// listed returns the listed skills that the file contains.
func (f *listedFile) listed() listedSkills {
	out := make(listedSkills, len(f.Dirs))
	for _, d := range f.Dirs {
		out.add(d.Dir, d.Skills)
		out[d.Dir].incomplete, out[d.Dir].unread, out[d.Dir].used = d.Incomplete, d.Unread, d.Used
	}
	return out
}

// storeListedSkills adds the skills in directories of a project to the file of
// listed skills, and records that the directories were used. It also records
// that the directories in unread have not been listed yet. It returns the new
// content of the file.
func (s *Setup) storeListedSkills(ctx context.Context, more map[string][]string, unread ...string) (listedSkills, error) {
	path := s.listedPath()
	if path == "" {
		return nil, nil
	}
	var out listedSkills
	err := privatefile.New(path, maxListedBytes).Change(ctx, func(old []byte) ([]byte, error) {
		f := listedFile{Version: listedVersion}
		if old != nil {
			var err error
			if f, err = decodeListed(old); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		f.add(more, unread, time.Now().UTC().Round(time.Second))
		data, err := f.encode()
		out = f.listed()
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// add adds the skills in more, which maps directories of a project to skills,
// as far as the limits permit. It also adds the directories in unread, which
// have not been listed yet.
func (f *listedFile) add(more map[string][]string, unread []string, now time.Time) {
	budget := maxListedProjectBytes
	for _, dir := range slices.Sorted(maps.Keys(more)) {
		i := f.find(dir)
		if i < 0 {
			i = len(f.Dirs)
			f.Dirs = append(f.Dirs, listedDir{Dir: dir, Listed: now, Skills: []string{}})
		}
		f.Dirs[i].Used, f.Dirs[i].Unread = now, false
		budget -= f.Dirs[i].add(more[dir], budget)
	}
	for _, dir := range unread {
		if f.find(dir) < 0 {
			f.Dirs = append(f.Dirs, listedDir{Dir: dir, Listed: now, Used: now, Skills: []string{}, Unread: true})
		}
	}
}

func (f *listedFile) find(dir string) int {
	return slices.IndexFunc(f.Dirs, func(d listedDir) bool { return d.Dir == dir })
}

// add adds skills as long as they fit in maxBytes. It returns the number of
// bytes used.
func (d *listedDir) add(skills []string, maxBytes int) int {
	size := 0
	for _, known := range d.Skills {
		size += jsonSize(known)
	}
	maxBytes = min(maxBytes, maxListedDirBytes-size)
	used := 0
	for _, skill := range slices.Sorted(slices.Values(skills)) {
		i, known := slices.BinarySearch(d.Skills, skill)
		if known {
			continue
		}
		n := jsonSize(skill)
		if used+n > maxBytes || len(d.Skills) >= maxListedSkills {
			d.Incomplete = true
			continue
		}
		used += n
		d.Skills = slices.Insert(d.Skills, i, skill)
	}
	return used
}

// encode returns the encoded file. If the file would be too large, encode first
// removes the skills of the least recently used directories, and then these
// directories.
func (f *listedFile) encode() ([]byte, error) {
	slices.SortStableFunc(f.Dirs, func(a, b listedDir) int { return a.Used.Compare(b.Used) })
	f.Dirs = f.Dirs[max(0, len(f.Dirs)-maxListedDirs):]
	total := jsonSize(listedFile{Version: listedVersion})
	sizes := make([]int, len(f.Dirs))
	for i, d := range f.Dirs {
		sizes[i] = jsonSize(d)
		total += sizes[i]
	}
	for i := range f.Dirs {
		if d := &f.Dirs[i]; total > maxListedBytes && len(d.Skills) > 0 {
			d.Skills, d.Incomplete = []string{}, true
			total -= sizes[i]
			sizes[i] = jsonSize(*d)
			total += sizes[i]
		}
	}
	removed := 0
	for ; total > maxListedBytes && removed < len(f.Dirs); removed++ {
		total -= sizes[removed]
	}
	f.Dirs = f.Dirs[removed:]
	return json.Marshal(f)
}

// jsonSize returns the size of v in a JSON array, with its comma.
func jsonSize(v any) int {
	data, _ := json.Marshal(v) // strings and times of this package always have a form in JSON
	return len(data) + 1
}

func decodeListed(data []byte) (listedFile, error) {
	var f listedFile
	err := json.Unmarshal(data, &f)
	if err != nil || f.Version != listedVersion {
		if err := privatefile.CheckVersion(data, listedVersion); err != nil {
			return f, err
		}
	}
	if err != nil {
		return f, fmt.Errorf("damaged file: %w", err)
	}
	if f.Version == 1 {
		f.migrate()
	}
	return f, nil
}

// migrate converts a file of version 1. That version stored the skill y in the
// directory x as "x:y", which is also the key of the skill x:y in the directory
// x:y. Keys with several colons are removed, so that their skills are pending.
func (f *listedFile) migrate() {
	f.Version = listedVersion
	for i := range f.Dirs {
		d := &f.Dirs[i]
		d.Used = d.Listed
		skills := []string{}
		for _, key := range d.Skills {
			switch dir, name, _ := strings.Cut(key, ":"); strings.Count(key, ":") {
			case 0:
				skills = append(skills, key)
			case 1:
				skills = append(skills, dir+keySeparator+name)
			default:
				d.Incomplete = true
			}
		}
		slices.Sort(skills)
		d.Skills = slices.Compact(skills)
	}
}
