package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// The saved index holds the tree of a directory source, so that the next
// process only has to compare stamps. It is a cache: an unreadable index, or
// one for another version or directory, is ignored.

const (
	maxIndex = 512 << 20
	// maxAhead is the maximum number of items allocated before they are read,
	// because a damaged file may contain any count.
	maxAhead = 1 << 10
)

// readIndex returns the saved tree of root, or nil if there is no usable index.
func readIndex(file, root, origin string, scope Scope) *node {
	if file == "" {
		return nil
	}
	text, err := readText(file)
	if err != nil {
		return nil
	}
	tree, err := decodeIndex(text, root, origin, scope)
	if err != nil {
		return nil
	}
	return tree
}

// readText reads a file of up to maxIndex bytes.
func readText(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if fi.Size() > maxIndex {
		return "", fmt.Errorf("%w: %d bytes (limit %d)", errIndex, fi.Size(), maxIndex)
	}
	var b strings.Builder
	b.Grow(int(fi.Size()))
	_, err = io.CopyBuffer(&b, io.LimitReader(f, fi.Size()), make([]byte, 64<<10))
	return b.String(), err
}

// writeIndex writes the index of root to file, atomically.
func writeIndex(file, root string, tree *node) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".index-*")
	if err != nil {
		return err
	}
	_, err = f.Write(encodeIndex(root, tree))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func encodeIndex(root string, tree *node) []byte {
	e := encoder{b: make([]byte, 0, 1<<10*(1+len(tree.subs)))}
	e.b = append(e.b, indexMagic...)
	e.str(root)
	e.node(tree)
	return e.b
}

type encoder struct{ b []byte }

func (e *encoder) int(v int64) { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) str(s string) {
	e.int(int64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) strs(ss []string) {
	e.int(int64(len(ss)))
	for _, s := range ss {
		e.str(s)
	}
}

func (e *encoder) stamp(s stamp) {
	e.int(s.size)
	e.int(s.mtime)
	e.int(int64(s.id.dev))
	e.int(int64(s.id.ino))
}

func (e *encoder) node(n *node) {
	e.str(n.name)
	e.stamp(n.stamp)
	e.int(n.seen)
	e.bool(n.skill != nil)
	if n.skill != nil {
		e.found(n.skill)
	}
	e.int(int64(len(n.packs)))
	for _, p := range n.packs {
		e.found(p)
	}
	e.problems(n.other)
	e.int(int64(len(n.subs)))
	for _, s := range n.subs {
		e.node(s)
	}
}

func (e *encoder) found(f *found) {
	e.str(f.file)
	e.stamp(f.stamp)
	e.int(f.seen)
	e.problems(f.problems)
	e.bool(f.entry != nil)
	if f.entry == nil {
		return
	}
	t := f.entry
	for _, s := range []string{t.Name, t.DisplayName, t.Description, t.Version, t.ArgumentHint, t.Dir, t.Path, t.file} {
		e.str(s)
	}
	e.strs(t.Tags)
	e.strs(t.BindShells)
	e.strs(t.Dependencies)
	for _, b := range []bool{t.DisableModelInvocation, t.UserInvocable, t.Preload, t.ProvidesTools, t.HasOwnName, t.Verbatim, t.archive} {
		e.bool(b)
	}
	e.int(int64(t.Warnings))
}

func (e *encoder) problems(ps []Problem) {
	e.int(int64(len(ps)))
	for _, p := range ps {
		e.str(p.Path)
		e.str(string(p.Severity))
		e.str(p.Code)
		e.str(p.Message)
		e.str(p.Fix)
		e.int(int64(p.Line))
		e.int(int64(p.Column))
		e.int(int64(p.Rule))
	}
}

// indexMagic is the first line of an index. The parsing rules determine the
// content, so an index is valid only for the same build.
var indexMagic = "loadout index 7 " + buildRevision() + "\n"

func buildRevision() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	id := bi.Main.Version
	for _, s := range bi.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			id += " " + s.Value
		}
	}
	return id
}

var errIndex = errors.New("damaged index")

// decodeIndex decodes an index. The strings of the result are parts of text, so
// that decoding many skills needs few allocations.
func decodeIndex(text, root, origin string, scope Scope) (*node, error) {
	rest, ok := strings.CutPrefix(text, indexMagic)
	if !ok {
		return nil, errIndex
	}
	d := decoder{text: rest, now: time.Now().UnixNano(), origin: origin, scope: scope}
	if saved := d.str(); saved != root {
		return nil, fmt.Errorf("%w: index is for directory %q", errIndex, saved)
	}
	tree := d.node(0)
	if d.bad || len(d.text) > 0 {
		return nil, errIndex
	}
	return tree, nil
}

type decoder struct {
	text   string // what is left
	bad    bool
	now    int64
	origin string
	scope  Scope
}

func (d *decoder) int() int64 {
	var buf [binary.MaxVarintLen64]byte
	v, n := binary.Varint(buf[:copy(buf[:], d.text)])
	if n <= 0 || n > 1 && buf[n-1] == 0 { // not a canonical encoding
		d.fail()
		return 0
	}
	d.text = d.text[n:]
	return v
}

func (d *decoder) fail() { d.bad, d.text = true, "" }

// count reads the number of items that follow. Each item takes at least one
// byte.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > int64(len(d.text)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) str() string {
	n := d.count()
	s := d.text[:n]
	d.text = d.text[n:]
	return s
}

func (d *decoder) bool() bool {
	if d.text == "" || d.text[0] > 1 {
		d.fail()
		return false
	}
	v := d.text[0] == 1
	d.text = d.text[1:]
	return v
}

func (d *decoder) strs() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]string, 0, min(n, maxAhead))
	for ; n > 0 && !d.bad; n-- {
		out = append(out, d.str())
	}
	return out
}

func (d *decoder) stamp() stamp {
	return stamp{size: d.int(), mtime: d.int(), id: fileID{uint64(d.int()), uint64(d.int())}}
}

func (d *decoder) node(depth int) *node {
	if depth > 1000 {
		d.fail()
		return nil
	}
	n := &node{name: d.str(), stamp: d.stamp(), seen: d.int()}
	if d.bool() {
		n.skill = d.found(n.stamp.id)
	}
	for i := d.count(); i > 0 && !d.bad; i-- {
		n.packs = append(n.packs, d.found(fileID{}))
	}
	n.other = d.problems()
	if n.skill != nil && n.skill.entry != nil && path.Base(n.skill.entry.Path) == n.name {
		n.name = path.Base(n.skill.entry.Path) // share the memory of the path
	}
	if count := d.count(); count > 0 {
		n.subs = make([]*node, 0, min(count, maxAhead))
		for ; count > 0 && !d.bad; count-- {
			n.subs = append(n.subs, d.node(depth+1))
		}
	}
	return n
}

func (d *decoder) found(id fileID) *found {
	f := &found{file: d.str(), stamp: d.stamp(), seen: d.int(), problems: d.problems()}
	if !d.bool() {
		return f
	}
	t := &Entry{Origin: d.origin, Scope: d.scope, id: id}
	for _, s := range []*string{&t.Name, &t.DisplayName, &t.Description, &t.Version, &t.ArgumentHint, &t.Dir, &t.Path, &t.file} {
		*s = d.str()
	}
	t.Tags, t.BindShells, t.Dependencies = d.strs(), d.strs(), d.strs()
	for _, b := range []*bool{&t.DisableModelInvocation, &t.UserInvocable, &t.Preload, &t.ProvidesTools, &t.HasOwnName, &t.Verbatim, &t.archive} {
		*b = d.bool()
	}
	t.Warnings = int(d.int())
	t.share()
	t.change = f.stamp.hash(d.now) // the scan reads a file again if its stamp could not be trusted
	if t.archive {
		t.id = f.stamp.id
	}
	f.entry = t
	return f
}

func (d *decoder) problems() []Problem {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]Problem, 0, min(n, maxAhead))
	for ; n > 0 && !d.bad; n-- {
		p := Problem{Path: d.str()}
		p.Diagnostic = skill.Diagnostic{Severity: skill.Severity(d.str()), Code: d.str(), Message: d.str(), Fix: d.str(),
			Line: int(d.int()), Column: int(d.int()), Rule: int(d.int())}
		out = append(out, p)
	}
	return out
}
