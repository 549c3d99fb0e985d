package catalog

import (
	"path"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// descendInto scans the subdirectory of d for which old is the result of the
// last scan. It returns nil if the subdirectory must not be searched.
func (s *scan) descendInto(d *dirfd, old *node, rel string, at level) (*node, error) {
	var sub *dirfd
	opened := false
	if s.within != nil { // a path may be replaced by a symlink at any time, an open directory may not
		if sub = d.openForLookup(old.name); sub == nil {
			var err error
			if sub, err = s.open(d, old.name); err != nil {
				return nil, err
			}
			opened = true
		}
		defer sub.close()
	}
	if n, ok := s.leaf(d, sub, old, rel); ok {
		return n, s.ctx.Err()
	}
	if !opened {
		var err error
		if sub, err = s.open(d, old.name); err != nil {
			return nil, err
		}
		defer sub.close()
	}
	return s.visit(sub, old, old.name, rel, at)
}

// leaf scans the subdirectory of d for which old is the result of the last
// scan. It does not list the subdirectory, because listing takes as long as
// reading the skills. This is possible if the subdirectory contains a SKILL.md
// and has no subdirectories except those for the skill's own files, as is
// usual. sub is the open subdirectory, or nil if it need not be opened. ok is
// false if the caller must visit the subdirectory instead.
func (s *scan) leaf(d, sub *dirfd, old *node, rel string) (n *node, ok bool) {
	at, name := location{d, old.name + "/"}, old.name
	if sub != nil {
		at, name = location{sub, ""}, ""
	}
	st, links := at.d.statDir(name)
	if links < 2 || s.visited[st.id] || !s.dirsLeft() {
		return nil, false
	}
	f := &found{file: skill.FileName}
	if old.stamp == st && !st.racy(old.seen) {
		if old.skill == nil || len(old.subs) > 0 {
			return nil, false
		}
		f = old.skill
	} else if !hasOnlyReservedDirs(at, links-2) {
		return nil, false
	} else if old.skill != nil && old.skill.file == f.file {
		f = old.skill
	}
	s.callOnDir(d.path, old.name)
	seen := time.Now().UnixNano()
	f = s.read(at, f, rel, st.id)
	if f.missing {
		return nil, false
	}
	s.countDir()
	s.visited[st.id] = true
	if old.stamp == st && old.skill == f {
		if !st.racy(old.seen) {
			return old, true
		}
		again := *old
		again.seen = seen
		s.countSettled(&again, old)
		return &again, true
	}
	name = old.name
	if f.entry != nil {
		name = path.Base(f.entry.Path) // share the memory of the path
	}
	return &node{name: name, stamp: st, seen: seen, skill: f}, true
}

// hasOnlyReservedDirs reports whether all subdirectories are reserved for the
// skill's own files. dirs is their number.
func hasOnlyReservedDirs(at location, dirs uint64) bool {
	for _, m := range [...]string{"references", "scripts", "assets"} {
		if dirs > 0 && at.d.hasDir(at.down+m) {
			dirs--
		}
	}
	return dirs == 0
}
