package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
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
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() > maxIndex {
		return nil
	}
	tree, err := decodeIndex(f, fi.Size(), root, origin, scope)
	if err != nil {
		return nil
	}
	return tree
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
	for _, part := range encodeIndex(root, tree) {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// encodeIndex encodes the scanned tree of root. An index consists of the path
// of its root, the size of the numbers in bytes (encoded in 8 bytes), the
// numbers, and the strings. Once decoded, only the strings stay in memory.
func encodeIndex(root string, tree *node) [][]byte {
	n := 1 + len(tree.subs)
	e := encoder{numbers: make([]byte, 0, n<<7), strings: make([]byte, 0, n<<9)}
	e.node(tree)
	return [][]byte{binary.BigEndian.AppendUint64(indexHead(root), uint64(len(e.numbers))), e.numbers, e.strings}
}

// indexHead returns the first bytes of an index of root.
func indexHead(root string) []byte {
	return append(binary.AppendUvarint([]byte(indexMagic()), uint64(len(root))), root...)
}

type encoder struct{ numbers, strings []byte }

func (e *encoder) int(v int64) { e.numbers = binary.AppendVarint(e.numbers, v) }
func (e *encoder) str(s string) {
	e.int(int64(len(s)))
	e.strings = append(e.strings, s...)
}

// suffix encodes s, which is often a suffix of whole, a string that was encoded
// before.
func (e *encoder) suffix(s, whole string) {
	is := s != "" && strings.HasSuffix(whole, s)
	e.bool(is)
	if is {
		e.int(int64(len(s)))
	} else {
		e.str(s)
	}
}

func (e *encoder) bool(v bool) {
	if v {
		e.numbers = append(e.numbers, 1)
	} else {
		e.numbers = append(e.numbers, 0)
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
	e.stamp(n.stamp)
	e.int(n.seen)
	e.bool(n.skill != nil)
	if n.skill != nil {
		e.found(n.skill)
	}
	e.suffix(n.name, n.path())
	e.int(int64(len(n.packs())))
	for _, p := range n.packs() {
		e.found(p)
	}
	e.problems(n.other())
	e.int(int64(len(n.subs)))
	for _, s := range n.subs {
		e.node(s)
	}
}

// path returns the path of the skill that the directory contains, or "" if it
// contains none.
func (n *node) path() string {
	if n.skill == nil || n.skill.entry == nil {
		return ""
	}
	return n.skill.entry.Path
}

func (e *encoder) found(f *found) {
	e.suffix(f.file, skill.FileName)
	e.stamp(f.stamp)
	e.int(f.seen)
	e.problems(f.problems)
	e.bool(f.entry != nil)
	if f.entry == nil {
		return
	}
	t := f.entry
	for _, s := range []string{t.Path, t.DisplayName, t.Description, t.Version, t.ArgumentHint} {
		e.str(s)
	}
	e.suffix(t.Dir, t.Path)
	e.suffix(t.Name, t.Path)
	e.suffix(t.file, skill.FileName)
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

// indexMagic returns the first line of an index. The parsing rules determine the
// content, so an index is valid only for the same build.
var indexMagic = sync.OnceValue(func() string { return "loadout index 8 " + buildRevision() + "\n" })

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

// decodeIndex decodes an index of size bytes. The strings of the result share
// one allocation, so that decoding many skills needs few allocations.
func decodeIndex(r io.ReaderAt, size int64, root, origin string, scope Scope) (*node, error) {
	head := indexHead(root)
	start := make([]byte, len(head)+8)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), start); err != nil || !bytes.HasPrefix(start, head) {
		return nil, fmt.Errorf("%w: header mismatch: not an index of %q in the current format", errIndex, root)
	}
	n := binary.BigEndian.Uint64(start[len(head):])
	at := int64(len(start))
	if n > uint64(size-at) {
		return nil, errIndex
	}
	strs := at + int64(n)
	d := decoder{file: io.NewSectionReader(r, at, int64(n)), unread: int(n), now: time.Now().UnixNano(), origin: origin, scope: scope}
	var text strings.Builder
	text.Grow(int(size - strs))
	if _, err := io.CopyBuffer(&text, io.NewSectionReader(r, strs, size-strs), make([]byte, 64<<10)); err != nil {
		return nil, err
	}
	d.text = text.String()
	tree := d.node(0)
	if d.bad || d.left() > 0 || len(d.text) > 0 {
		return nil, errIndex
	}
	return tree, nil
}

type decoder struct {
	file    io.Reader // the numbers
	unread  int       // how many bytes of file are not read yet
	buffer  []byte
	numbers []byte // read, but not decoded yet
	text    string // not decoded yet
	bad     bool
	now     int64
	origin  string
	scope   Scope
}

// fill reads more data if d.numbers may not contain a complete number.
func (d *decoder) fill() {
	if len(d.numbers) >= binary.MaxVarintLen64 || d.unread == 0 {
		return
	}
	if d.buffer == nil {
		d.buffer = make([]byte, min(binary.MaxVarintLen64+d.unread, 64<<10))
	}
	n := copy(d.buffer, d.numbers)
	more := min(d.unread, len(d.buffer)-n)
	if _, err := io.ReadFull(d.file, d.buffer[n:n+more]); err != nil {
		d.fail()
		return
	}
	d.numbers, d.unread = d.buffer[:n+more], d.unread-more
}

// left returns the number of bytes of encoded numbers that have not been
// decoded yet.
func (d *decoder) left() int { return len(d.numbers) + d.unread }

func (d *decoder) int() int64 {
	d.fill()
	v, n := binary.Varint(d.numbers)
	if n <= 0 || n > 1 && d.numbers[n-1] == 0 { // not a canonical encoding
		d.fail()
		return 0
	}
	d.numbers = d.numbers[n:]
	return v
}

func (d *decoder) fail() { d.bad, d.numbers, d.unread, d.text = true, nil, 0, "" }

// count reads the number of items that follow. Each item takes at least one
// byte.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > int64(d.left()) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) str() string {
	n := d.int()
	if n < 0 || n > int64(len(d.text)) {
		d.fail()
		return ""
	}
	s := d.text[:n]
	d.text = d.text[n:]
	return s
}

func (d *decoder) suffix(of string) string {
	if !d.bool() {
		s := d.str()
		if s != "" && strings.HasSuffix(of, s) { // not a canonical encoding
			d.fail()
		}
		return s
	}
	n := d.int()
	if n <= 0 || n > int64(len(of)) {
		d.fail()
		return ""
	}
	return of[int64(len(of))-n:]
}

func (d *decoder) bool() bool {
	d.fill()
	if len(d.numbers) == 0 || d.numbers[0] > 1 {
		d.fail()
		return false
	}
	v := d.numbers[0] == 1
	d.numbers = d.numbers[1:]
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
	n := &node{stamp: d.stamp(), seen: d.int()}
	if d.bool() {
		n.skill = d.found(n.stamp.id)
	}
	n.name = d.suffix(n.path())
	for i := d.count(); i > 0 && !d.bad; i-- {
		n.addPack(d.found(fileID{}))
	}
	if other := d.problems(); len(other) > 0 {
		n.more = &nodeMore{n.packs(), other}
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
	f := &found{file: d.suffix(skill.FileName), stamp: d.stamp(), seen: d.int(), problems: d.problems()}
	if !d.bool() {
		return f
	}
	t := &Entry{Origin: d.origin, Scope: d.scope, id: id}
	for _, s := range []*string{&t.Path, &t.DisplayName, &t.Description, &t.Version, &t.ArgumentHint} {
		*s = d.str()
	}
	t.Dir, t.Name, t.file = d.suffix(t.Path), d.suffix(t.Path), d.suffix(skill.FileName)
	t.Tags, t.BindShells, t.Dependencies = d.strs(), d.strs(), d.strs()
	for _, b := range []*bool{&t.DisableModelInvocation, &t.UserInvocable, &t.Preload, &t.ProvidesTools, &t.HasOwnName, &t.Verbatim, &t.archive} {
		*b = d.bool()
	}
	t.Warnings = int(d.int())
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
