package migrate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/picture"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Limits on Loadout conversations that were exported as JSON lines. Such files are
// not held in memory, except for texts and images that are kept.
const (
	maxEventBytes = 256 << 20 // of all these files
	maxEventLine  = 24 << 20  // a hub stores events of up to 16 MiB, without the images of messages
	maxBranches   = 100_000   // of one conversation
	maxTitle      = 1000      // bytes

	// A hub accepts no more in a conversation.
	maxImages      = 100
	maxImage       = 15 << 18 // bytes of one image
	maxImagePixels = 8000     // width and height

	maxImageBytes = 64 << 20 // of all conversations
)

// readEvents adds the conversation in a file with one event per line.
func (r *reader) readEvents(p string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		r.plan.addLost(File, d.Name(), p, "cannot be read: %v", fileerror.Cause(err))
		return nil
	}
	if r.count == maxFiles || r.eventBytes+info.Size() > maxEventBytes {
		r.plan.addLost(File, d.Name(), p, "not read: more than %d files or %d bytes of conversations in all; migrate them one by one", maxFiles, maxEventBytes)
		return nil
	}
	r.count++
	r.eventBytes += info.Size()
	err = r.parseEvents(p)
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if lost, ok := errors.AsType[*lostError](err); ok {
		r.plan.addLost(File, path.Base(p), p, "%s", lost.reason)
	} else if err != nil {
		r.plan.addLost(File, d.Name(), p, "cannot be read: %v", fileerror.Cause(err))
	}
	return nil
}

// lostError is the reason why no conversation is migrated from a file.
type lostError struct{ reason string }

func (e *lostError) Error() string { return e.reason }

func lostErrorf(format string, args ...any) error { return &lostError{fmt.Sprintf(format, args...)} }

// parseEvents adds a Loadout conversation that was exported as JSON lines. It
// ignores the skill texts and permissions in the export: the skills that were
// active at the end are loaded again from the user's own skills. If the messages of
// all branches exceed a limit, it adds the current branch.
func (r *reader) parseEvents(p string) error {
	path, err := r.currentPath(p)
	if err != nil {
		return err
	}
	images, texts := r.imageBytes, r.bytes
	c, err := r.eventsOn(p, path, true)
	if branched := len(path) > 1 || len(path) == 1 && path[0].first > 1; branched && c != nil && err == nil && c.further > 0 {
		r.imageBytes, r.bytes = images, texts
		c, err = r.eventsOn(p, path, false)
	}
	if c == nil || err != nil {
		return err
	}
	active := []string{}
	for _, a := range c.state.Active() {
		active = appendName(active, a.Skill.Name)
	}
	if c.end = c.tip; c.end == len(c.Messages) {
		c.end = 0
	}
	r.addOwn(&c.exported, active)
	return nil
}

// span is a range of events that follow each other.
type span struct{ first, last int64 }

// currentPath returns the events on the current branch of an exported conversation.
func (r *reader) currentPath(p string) ([]span, error) {
	parents := map[int64]int64{} // of the events that do not follow the previous one
	n := int64(0)
	err := r.eachLine(p, func(line []byte, ended bool) (bool, error) {
		if !ended && !json.Valid(line) { // the program was still writing it
			return false, nil
		}
		n++
		if len(line) < 1000 && bytes.Contains(line, []byte(`"branched"`)) {
			var e session.Event
			if json.Unmarshal(line, &e) == nil && e.Branched != nil && e.Seq == n {
				parents[n] = e.Parent()
			}
		}
		if len(parents) > maxBranches {
			return false, lostErrorf("too many branches (limit %d)", maxBranches)
		}
		return true, nil
	})
	var out []span
	starts := make([]int64, 0, len(parents))
	for seq := range parents {
		starts = append(starts, seq)
	}
	slices.Sort(starts)
	for n > 0 {
		i := sort.Search(len(starts), func(i int) bool { return starts[i] > n })
		if i == 0 {
			out = append(out, span{1, n})
			break
		}
		first := starts[i-1]
		out = append(out, span{first, n})
		n = parents[first]
	}
	slices.Reverse(out)
	return out, err
}

// pastEvents is a conversation read from exported events.
type pastEvents struct {
	exported
	state session.State // at the end of the current branch
	path  []span
	all   bool  // whether to keep other branches
	tip   int   // number of the last message before the next event, from 1
	tips  []tip // tips after earlier events
}

// tip is the number of the last message up to an event.
type tip struct {
	seq     int64
	message int
}

// exportedInfo describes a conversation in its first event.
type exportedInfo struct {
	Title       string `json:"title"`
	TitleSource string `json:"title_source"`
}

// eventsOn reads the events of a file whose current branch is path. It returns nil if
// the file contains no events.
func (r *reader) eventsOn(p string, path []span, all bool) (*pastEvents, error) {
	c := &pastEvents{exported: exported{PastConversation: PastConversation{From: p}, images: map[string]llm.Image{}}, path: path, all: all}
	n, loads := int64(0), 0
	isLog := true
	err := r.eachLine(p, func(line []byte, ended bool) (bool, error) {
		n++
		if line == nil {
			c.lines++
			return true, nil
		}
		if hasManyValues(line) {
			return false, lostErrorf("line %d has too many JSON values (limit %d)", n, maxValues)
		}
		var event struct {
			session.Event
			Conversation *exportedInfo `json:"conversation"`
		}
		if err := json.Unmarshal(line, &event); err != nil || event.Seq != n {
			switch {
			case !ended: // the program was still writing it
				return false, nil
			case n == 1:
				isLog = false
				return false, nil
			}
			return false, lostErrorf("line %d is not an event of a conversation", n)
		}
		if event.Used != nil {
			event.Used.Tools = nil // not needed, and each event would copy those of the earlier ones
		}
		if event.Loaded != nil {
			loads++
		}
		if loads > maxLoads {
			return false, lostErrorf("line %d: too many loads of skills (limit %d)", n, maxLoads)
		}
		if about := event.Conversation; n == 1 && about != nil {
			c.Title, c.TitleSource = printable.Text(untrusted.New(about.Title).ForModel(), maxTitle), about.TitleSource
		}
		r.addEvent(c, &event.Event)
		if r.bytes > r.maxBytes {
			return false, lostErrorf("not read: more than %d bytes of messages in all; migrate fewer conversations at once", r.maxBytes)
		}
		return true, nil
	})
	if !isLog {
		return nil, err
	}
	return c, err
}

// addEvent adds the message of an event, and counts its calls and images, which
// are not migrated.
func (r *reader) addEvent(c *pastEvents, event *session.Event) {
	current := c.isOnPath(event.Seq)
	if event.Branched != nil && c.all {
		c.tip = c.lastMessageAt(event.Parent())
		c.tips = append(c.tips, tip{event.Seq, c.tip})
	}
	m := event.Message
	var images []llm.Image
	var sums []string
	if m != nil && m.Role == llm.User {
		images, sums = r.keepImages(&c.exported, m.Images)
	}
	if !current && !c.all {
		if m != nil && (m.Text != "" || len(m.Images) > 0) {
			c.branched++
		}
		return
	}
	if event.Result != nil {
		c.parts += len(event.Result.Images)
	}
	if m != nil {
		c.calls += len(m.Calls)
	}
	if current {
		event.Message = withoutImages(m)
		c.state.Apply(*event)
	}
	if m == nil || m.Role != llm.User && m.Role != llm.Assistant {
		return
	}
	r.bytes += int64(len(m.Text))
	past := PastMessage{PastMessage: session.PastMessage{Role: m.Role, Text: c.clean(m.Text)}, Time: validTime(event.Time), Images: images, sums: sums}
	if c.tip != len(c.Messages) {
		follows := c.tip
		past.follows = &follows
	}
	switch {
	case past.isEmpty():
	case !c.add(past):
		c.further++
	default:
		c.tip = len(c.Messages)
		c.tips = append(c.tips, tip{event.Seq, c.tip})
	}
}

// withoutImages returns a message without its images, which a state would hold.
func withoutImages(m *session.Message) *session.Message {
	if m == nil || len(m.Images) == 0 {
		return m
	}
	out := *m
	out.Images = nil
	return &out
}

// isOnPath reports whether an event is on the current branch.
func (c *pastEvents) isOnPath(seq int64) bool {
	_, found := slices.BinarySearchFunc(c.path, seq, func(s span, seq int64) int {
		switch {
		case seq < s.first:
			return 1
		case seq > s.last:
			return -1
		}
		return 0
	})
	return found
}

// lastMessageAt returns the number of the last message up to an event, or 0.
func (c *pastEvents) lastMessageAt(seq int64) int {
	i := sort.Search(len(c.tips), func(i int) bool { return c.tips[i].seq > seq })
	if i == 0 {
		return 0
	}
	return c.tips[i-1].message
}

// keepImages returns the images of a message and their hashes. An export contains the
// content of each image once; further messages refer to it. Images over the limits,
// those that the export left out, and those deleted before it have no Data.
func (r *reader) keepImages(c *exported, images []llm.Image) (out []llm.Image, sums []string) {
	for _, i := range images {
		c.imageName = cmp.Or(c.imageName, path.Base(untrusted.New(i.Name).ForModel()))
		key := i.Ref
		if raw, err := hex.DecodeString(key); err != nil || len(raw) != sha256.Size {
			sum := sha256.Sum256(i.Data)
			key = hex.EncodeToString(sum[:])
		}
		kept, known := c.images[key]
		if !known {
			kept = llm.Image{MIMEType: i.MIMEType, Ref: key}
			switch info, err := picture.Inspect(i.Data); {
			case len(i.Data) == 0 && i.Ref == "": // deleted before the export
			case err != nil || len(i.Data) > maxImage || max(info.Width, info.Height) > maxImagePixels || c.kept == maxImages || r.imageBytes+len(i.Data) > maxImageBytes:
				c.lost++
			default:
				c.kept++
				r.imageBytes += len(i.Data)
				kept = llm.Image{MIMEType: info.MIMEType, Data: i.Data}
			}
			if len(c.images) < maxMessages { // otherwise further messages do not find it
				c.images[key] = kept
			}
		}
		out, sums = append(out, kept), append(sums, key)
	}
	return out, sums
}

// eachLine calls f with each line of a file until f returns false or an error. ended is
// false for the last line if it has no line break. A line over the limit is nil.
func (r *reader) eachLine(p string, f func(line []byte, ended bool) (bool, error)) error {
	file, err := r.files.Open(p)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(io.LimitReader(file, maxEventBytes), 64<<10)
	var line []byte
	long := false
	for r.ctx.Err() == nil {
		part, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if long = long || len(line)+len(part) > maxEventLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || long {
			more, failed := f(line, err == nil)
			if failed != nil || !more {
				return failed
			}
		}
		if err != nil {
			return nil
		}
		line, long = line[:0], false
	}
	return context.Cause(r.ctx)
}
