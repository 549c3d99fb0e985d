package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// listedSkills holds the skills that directories in projects had when they were
// first listed, and those confirmed since; see listedKey.
type listedSkills map[string]map[string]bool

// add adds skills of a directory.
func (l listedSkills) add(dir string, skills []string) {
	if l[dir] == nil {
		l[dir] = map[string]bool{}
	}
	for _, skill := range skills {
		l[dir][skill] = true
	}
}

const (
	listedVersion   = 1
	maxListedDirs   = 2000 // the oldest is dropped, and then listed anew
	maxListedSkills = 2000 // in a directory; others are never pending
	maxListedBytes  = 4 << 20
)

// listedFile is the content of the file with [listedSkills].
type listedFile struct {
	Version int         `json:"version"`
	Dirs    []listedDir `json:"dirs"` // oldest first
}

type listedDir struct {
	Dir    string    `json:"dir"`
	Listed time.Time `json:"listed"` // first
	Skills []string  `json:"skills"`
}

// listedPath returns the path of the file, or "" without a state directory.
func (s *Setup) listedPath() string {
	if d := s.StateDir(); d != "" {
		return filepath.Join(d, "project-skills.json")
	}
	return ""
}

// readListedSkills reads the file. It returns no error if there is none.
func (s *Setup) readListedSkills() (listedSkills, error) {
	out := listedSkills{}
	path := s.listedPath()
	if path == "" {
		return out, nil
	}
	data, err := privatefile.New(path, maxListedBytes).Read()
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	f, err := decodeListed(data)
	if err != nil {
		return out, exit.Errorf(exit.Failure, "to begin a new list, remove the file", "%s: %w", path, err)
	}
	for _, d := range f.Dirs {
		out.add(d.Dir, d.Skills)
	}
	return out, nil
}

// storeListedSkills adds skills of directories to the file.
func (s *Setup) storeListedSkills(ctx context.Context, more map[string][]string) error {
	path := s.listedPath()
	if path == "" {
		return nil
	}
	return privatefile.New(path, maxListedBytes).Change(ctx, func(old []byte) ([]byte, error) {
		f := listedFile{Version: listedVersion}
		if old != nil {
			var err error
			if f, err = decodeListed(old); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		for dir, skills := range more {
			i := slices.IndexFunc(f.Dirs, func(d listedDir) bool { return d.Dir == dir })
			if i < 0 {
				i = len(f.Dirs)
				f.Dirs = append(f.Dirs, listedDir{Dir: dir, Listed: time.Now().UTC().Round(time.Second), Skills: []string{}})
			}
			d := &f.Dirs[i]
			d.Skills = slices.Concat(d.Skills, skills)
			slices.Sort(d.Skills)
			d.Skills = slices.Compact(d.Skills)
		}
		f.Dirs = f.Dirs[max(0, len(f.Dirs)-maxListedDirs):]
		return json.Marshal(f)
	})
}

func decodeListed(data []byte) (listedFile, error) {
	var f listedFile
	if err := privatefile.CheckVersion(data, listedVersion); err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("damaged: %w", err)
	}
	return f, nil
}
