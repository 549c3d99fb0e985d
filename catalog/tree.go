package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/steering"
	"github.com/loadout-dev/loadout/skill"
)

// kind is the file type of a directory entry.
type kind uint8

const (
	kindUnknown kind = iota // a symlink, or a system that does not report the kind
	kindDir
	kindFile
	kindOther
)

type dirent struct {
	name string
	kind kind
}

// isRelevantName reports whether a scan uses files with the given name.
func isRelevantName[S string | []byte](name S) bool {
	n := len(name)
	return n == len(skill.FileName) && name[n-3] == '.' || n > 3 && string(name[n-3:]) == ".py" || n > 6 && name[n-6] == '.'
}

// fileID identifies a file on its system. It is zero if the system does not
// provide file identities.
type fileID struct{ dev, ino uint64 }

// stamp holds metadata that is used to detect changes to a file or directory.
type stamp struct {
	size  int64
	mtime int64
	id    fileID
}

// racy reports whether a change right after seen could leave the stamp
// unchanged, because file times have a low resolution.
func (s stamp) racy(seen int64) bool { return s.mtime > seen-int64(2*time.Second) }

// hash returns a number that identifies the content of a file whose stamp was
// taken at the time seen, or 0 if a later change could leave the stamp
// unchanged.
func (s stamp) hash(seen int64) uint64 {
	if s.racy(seen) {
		return 0
	}
	h := uint64(0)
	for _, v := range []uint64{uint64(s.size), uint64(s.mtime), s.id.dev, s.id.ino} {
		h = mixHash(h, v)
	}
	return max(1, h)
}

// mixHash adds v to a hash.
func mixHash(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
	return hi ^ lo ^ h<<1
}

// node is the result of scanning a directory. A later scan reuses nodes whose
// stamps have not changed.
type node struct {
	name  string
	stamp stamp
	seen  int64 // time of the last listing, in Unix nanoseconds
	skill *found
	subs  []*node // subdirectories to search, sorted by name
	more  *nodeMore
}

// nodeMore holds fields of node that few directories need. They are separate to
// save memory, because there may be very many nodes.
type nodeMore struct {
	packs []*found // archives
	other []Problem
}

func (n *node) packs() []*found {
	if n.more == nil {
		return nil
	}
	return n.more.packs
}

func (n *node) other() []Problem {
	if n.more == nil {
		return nil
	}
	return n.more.other
}

func (n *node) addPack(f *found) { n.more = &nodeMore{append(n.packs(), f), n.other()} }

func (n *node) addProblem(p Problem) { n.more = &nodeMore{n.packs(), append(n.other(), p)} }

// found is a SKILL.md or an archive with its parsed content.
type found struct {
	file     string
	stamp    stamp
	seen     int64
	entry    *Entry // nil if the skill does not load
	problems []Problem
	missing  bool // whether the file does not exist; never stored
}

// scan holds the state of a single walk of a directory tree.
type scan struct {
	ctx      context.Context
	opts     *DirOptions
	within   *boundary // nil if symlinks are not restricted
	deadline time.Time
	shared   *sharedBudget   // budget of all sources in the project; may be nil
	onDir    func(at string) // called after a directory was inspected, if not nil
	origin   string
	scope    Scope
	head     []byte // buffer for the starts of files
	dirents  []byte
	name     nameBuffer
	dirs     int
	names    int // names read from directories
	parsed   int
	settled  int             // see countSettled
	visited  map[fileID]bool // visited directories, to detect symlink cycles
	problems []Problem

	stops     []stop
	outside   int // number of paths that lead outside the boundary
	tooDeep   int // number of directories whose subdirectories were not searched
	firstDeep string
}

// isSkippedDir reports whether a scan skips directories with the given name. They
// contain version control data, dependencies, caches, or skills that only the
// client that installed them (Codex) can use. Code may change dependencies without
// the user's consent.
func isSkippedDir(name string) bool {
	switch name {
	case ".system", "vendor", ".cache", ".terraform", ".idea", ".vscode":
		return true
	}
	return steering.IsDependencyDir(name) || skillpath.IsIgnored(name)
}

// isReservedDir reports whether the specification reserves a directory name for a
// skill's own files. A SKILL.md in such a directory is a template or a sample.
func isReservedDir(name string) bool {
	return name == "scripts" || name == "references" || name == "assets"
}

// visit scans the open directory d at rel and reuses old, which may be nil. It
// returns nil if the directory must not be searched.
func (s *scan) visit(d *dirfd, old *node, name, rel string, at level) (*node, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	st, err := d.self()
	if err != nil {
		return nil, err
	}
	if st.id != (fileID{}) {
		if s.visited[st.id] {
			return nil, nil
		}
		s.visited[st.id] = true
	}
	if !s.dirsLeft() {
		s.stopAt(stopDirs, d.path)
		return nil, nil
	}
	s.countDir()
	s.callOnDir(d.path, "")
	n := &node{name: name, stamp: st}
	below := level{at.depth + 1, at.inside, at.was || old != nil && old.skill != nil}
	if old != nil && old.stamp == st && at.inside == at.was && !st.racy(old.seen) {
		*n = *old
	} else if err := s.list(d, n, old, rel, at.inside); err != nil {
		return nil, err
	}
	s.countSettled(n, old)
	if n.skill != nil {
		n.skill = s.read(location{d, ""}, n.skill, rel, st.id)
		below.inside = true
	}
	for i, p := range n.packs() {
		if !s.outOfTime(d, p.file) {
			n.more.packs[i] = s.readPack(d, p, rel)
		}
	}
	s.descend(d, n, rel, below)
	return n, nil
}

// countSettled counts a directory that did not change, but whose stamp became
// reliable with time. The index is saved then, so that the next process need not
// list the directory again.
func (s *scan) countSettled(n, old *node) {
	if old != nil && old.stamp == n.stamp && n.stamp.racy(old.seen) && !n.stamp.racy(n.seen) {
		s.settled++
	}
}

// level describes the position of a directory in the tree: its depth below the
// root, and whether one of its parents contains a skill, now and at the last
// scan.
type level struct {
	depth       int
	inside, was bool
}

// list reads a directory and reuses the nodes in old that still exist.
func (s *scan) list(d *dirfd, n, old *node, rel string, inside bool) error {
	n.seen = time.Now().UnixNano()
	most := s.namesLeft()
	names, read, err := d.list(s.dirents, most)
	if err != nil {
		return err
	}
	if s.countNames(read); read > most {
		s.stopAt(stopNames, d.path)
		n.seen = 0 // list it again next time
	}
	slices.SortFunc(names, func(a, b dirent) int { return cmp.Compare(a.name, b.name) })
	var python, links []string
	for _, e := range names {
		if e.kind == kindUnknown && s.outOfTime(d, e.name) {
			n.seen = 0
			break
		}
		switch {
		case skillpath.IsSkillFile(e.name) && e.kind != kindDir:
			if n.skill == nil || e.name == skill.FileName { // this spelling takes precedence
				n.skill = &found{file: e.name}
			}
		case e.kind == kindDir || e.kind == kindUnknown && s.isDir(d, e.name):
			if !isSkippedDir(e.name) {
				n.subs = append(n.subs, &node{name: e.name})
				if e.kind == kindUnknown {
					links = append(links, e.name)
				}
			}
		case strings.EqualFold(path.Ext(e.name), ".skill"):
			n.addPack(&found{file: e.name})
		case path.Ext(e.name) == ".py":
			python = append(python, e.name)
		}
	}
	if inside || n.skill != nil {
		n.more = nil // archives in a skill are ordinary files
		n.subs = slices.DeleteFunc(n.subs, func(sub *node) bool {
			return isReservedDir(sub.name) || slices.Contains(links, sub.name) && !d.hasDir(sub.name) // a symlink may lead outside the skill
		})
	} else {
		s.reportCodeManifests(d, n, python)
	}
	if old != nil {
		n.reuse(old)
	}
	return nil
}

// isDir reports whether a file is a directory or a symlink to one. A symlink
// that must not be followed counts as a directory, so that each scan reports it.
func (s *scan) isDir(d *dirfd, name string) bool {
	_, k, err := s.stat(d, name)
	if _, out := errors.AsType[*outsideError](err); out {
		return true
	}
	return err == nil && k == kindDir
}

// stat returns the stamp and the kind of a file. It follows symlinks, except
// those that lead outside the boundary.
func (s *scan) stat(d *dirfd, name string) (stamp, kind, error) {
	if s.within == nil {
		return d.stat(name)
	}
	st, k, err := d.statNoFollow(name)
	if err != nil || k != kindUnknown {
		return st, k, err
	}
	fi, err := s.within.stat(d.path + "/" + name)
	if err != nil {
		return stamp{}, kindOther, err
	}
	return stampOfInfo(fi), infoKind(fi), nil
}

// open opens a subdirectory. It follows symlinks, except those that lead
// outside the boundary.
func (s *scan) open(d *dirfd, name string) (*dirfd, error) {
	if s.within == nil {
		return d.sub(name)
	}
	sub, err := d.subNoFollow(name)
	if err != nil && d.isLink(name) {
		return s.within.openDir(d.path + "/" + name)
	}
	return sub, err
}

// reuse replaces subdirectory nodes with those in old that have the same names.
func (n *node) reuse(old *node) {
	if n.skill != nil && old.skill != nil && n.skill.file == old.skill.file {
		n.skill = old.skill
	}
	for i, p := range n.packs() {
		if j := slices.IndexFunc(old.packs(), func(o *found) bool { return o.file == p.file }); j >= 0 {
			n.more.packs[i] = old.packs()[j]
		}
	}
	for i, sub := range n.subs {
		if j, ok := slices.BinarySearchFunc(old.subs, sub.name, func(o *node, name string) int { return cmp.Compare(o.name, name) }); ok {
			n.subs[i] = old.subs[j]
		}
	}
}

func (s *scan) descend(d *dirfd, n *node, rel string, at level) {
	if len(n.subs) == 0 {
		return
	}
	if at.depth > s.opts.MaxDepth {
		if s.tooDeep++; s.tooDeep == 1 {
			s.firstDeep = d.path
		}
		return
	}
	subs := make([]*node, 0, len(n.subs))
	same := s.unchanged(d, n.subs)
	for i, old := range n.subs {
		if s.outOfTime(d, old.name) {
			subs = append(subs, old)
			continue
		}
		if !s.visited[old.stamp.id] && s.dirsLeft() && s.isUnchanged(d, n.subs, i, same) {
			s.callOnDir(d.path, old.name)
			s.countDir()
			s.visited[old.stamp.id] = true
			subs = append(subs, old)
			continue
		}
		sub, err := s.descendInto(d, old, path.Join(rel, old.name), at)
		switch {
		case err != nil && s.ctx.Err() != nil:
			subs = append(subs, old) // interrupted: keep the previous state
		case err != nil:
			s.reportUnsearched(d.path+"/"+old.name, err)
			subs = append(subs, &node{name: old.name})
		case sub == nil: // reached by another path, or beyond a limit; the next scan may visit it
			subs = append(subs, &node{name: old.name})
		default:
			subs = append(subs, sub)
		}
	}
	n.subs = subs
}

// location is a path relative to an open directory. down is empty or ends in a
// slash.
type location struct {
	d    *dirfd
	down string
}

func (p location) path() string { return strings.TrimSuffix(p.d.path+"/"+p.down, "/") }

// read parses the frontmatter of a SKILL.md. If the file has not changed, it
// returns f.
func (s *scan) read(at location, f *found, rel string, id fileID) *found {
	if f.seen != 0 && !f.stamp.racy(f.seen) {
		if st, _, err := s.stat(at.d, at.down+f.file); err == nil && st == f.stamp {
			return f
		}
	}
	dir := at.path()
	fresh := &found{file: f.file, seen: time.Now().UnixNano()}
	where := dir + "/" + f.file
	sk, ds, st, err := s.parseHead(at, f.file, path.Base(dir))
	fresh.stamp = st
	if err != nil {
		fresh.missing = errors.Is(err, fs.ErrNotExist)
		fresh.seen = 0 // try again next time
		fresh.problems = []Problem{{Path: where, Diagnostic: unreadable(err)}}
		if !fresh.missing && !slices.Equal(fresh.problems, f.problems) {
			s.parsed++
		}
		return fresh
	}
	s.parsed++
	if f.file != skill.FileName && slices.ContainsFunc(ds, func(d skill.Diagnostic) bool { return d.Code == "frontmatter-missing" }) {
		return fresh // a different document that happens to be named skill.md
	}
	for _, diag := range ds.Problems() {
		fresh.problems = append(fresh.problems, Problem{Path: where, Diagnostic: diag})
	}
	if sk != nil && ds.Loads() {
		e := newEntry(sk, ds)
		e.Origin, e.Scope, e.Dir, e.Path, e.id, e.file = s.origin, s.scope, rel, dir, id, f.file
		e.change = st.hash(fresh.seen)
		e.share()
		fresh.entry = e
	}
	fresh.reuseEntry(f)
	return fresh
}

// reuseEntry replaces the new entry with the old one if they are equal, so that
// no change is reported. The old entry may lack the hash of the stamp.
func (f *found) reuseEntry(old *found) {
	if f.entry == nil || old.entry == nil || f.stamp != old.stamp {
		return
	}
	same := *f.entry
	same.change = old.entry.change
	if reflect.DeepEqual(&same, old.entry) {
		f.entry = old.entry
	}
}

const (
	firstRead = 4 << 10
	fullHead  = skillfile.MaxFrontmatterBytes + 4<<10
)

func (s *scan) parseHead(at location, file, folder string) (*skill.Skill, skill.Diagnostics, stamp, error) {
	n, st, err := at.d.readHead(at.down+file, s.head[:firstRead])
	if err != nil {
		return nil, nil, st, err
	}
	sk, ds, more := skill.ParseHead(s.head[:n], int64(n) >= st.size, file, folder)
	if !more {
		return sk, ds, st, nil
	}
	if n, st, err = at.d.readHead(at.down+file, s.head[:fullHead]); err != nil {
		return nil, nil, st, err
	}
	sk, ds, more = skill.ParseHead(s.head[:n], int64(n) >= st.size, file, folder)
	if more { // the file grew during the read, or its frontmatter does not end
		sk, ds, _ = skill.ParseHead(s.head[:n], true, file, folder)
	}
	return sk, ds, st, nil
}

// reportCodeManifests reports Python modules that declare a skill in code,
// which is a format of an earlier system. It parses them as text and never
// executes them.
func (s *scan) reportCodeManifests(d *dirfd, n *node, files []string) {
	for _, name := range files[:min(len(files), 20)] {
		size, _, err := d.readHead(name, s.head[:fullHead])
		if err != nil || !bytes.Contains(s.head[:size], []byte("SKILL_MANIFEST")) {
			continue
		}
		if i := bytes.Index(s.head[:size], []byte("SKILL_MANIFEST")); i > 0 && s.head[i-1] != '\n' {
			continue // mentioned, but not assigned at the top level
		}
		n.addProblem(Problem{Path: d.path + "/" + name, Diagnostic: skill.Diagnostic{
			Severity: skill.Warning, Code: "code-manifest",
			Message: "the skill is declared in Python code and has no SKILL.md",
			Fix:     fmt.Sprintf("make one with: loadout new --from %s", d.path+"/"+name)}})
	}
}

func (s *scan) problem(where string, d skill.Diagnostic) {
	s.problems = append(s.problems, Problem{Path: where, Diagnostic: d})
}

func unreadable(err error) skill.Diagnostic {
	if out, ok := errors.AsType[*outsideError](err); ok {
		return outsideProblem(out)
	}
	if blocked, ok := errors.AsType[*blockedError](err); ok {
		return blocked.diagnostic()
	}
	d := skill.Diagnostic{Severity: skill.Error, Code: "unreadable", Message: "cannot be read: " + fileerror.Cause(err).Error(),
		Fix: "check that it exists and that you have permission to read it"}
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.Fix = "give the user who runs this program permission to read it"
	case errors.Is(err, fs.ErrNotExist):
		d.Code, d.Fix = "not-found", "check the path; it may be a dangling symlink"
	}
	return d
}

func infoKind(fi fs.FileInfo) kind {
	switch {
	case fi.IsDir():
		return kindDir
	case fi.Mode().IsRegular():
		return kindFile
	}
	return kindOther
}
