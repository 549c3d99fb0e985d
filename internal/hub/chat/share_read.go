package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/store"
)

// Limits of reading a conversation to share, which are checked while it is read.
const (
	maxShareRead    = 128 << 20 // bytes of the steps on the branch
	maxUnsharedText = 8 << 20   // bytes of text that is not shared and searched for secrets, newest first
	sharePage       = 8         // steps to read at once; a step may contain images
)

// sharedBranch is the part of a branch from which a share is made.
type sharedBranch struct {
	steps    []step   // in order, without what is not shared
	unshared []string // texts that are not shared but may name a secret that shared texts repeat
	images   int      // images in results of calls
	size     int      // bytes of the content so far

	addedSize int // bytes of the unshared texts
}

// loadedSkills returns the store IDs of the skills that were loaded on any branch.
// They may belong to groups of which the user is not a member.
func (e *Engine) loadedSkills(ctx context.Context, id string) ([]string, error) {
	var out []string
	read := 0
	for after := int64(0); ; {
		rows, err := e.db.Events.ReadKind(ctx, id, "skill_loaded", after, sharePage)
		if err != nil || len(rows) == 0 {
			return out, err
		}
		for _, r := range rows {
			if read += len(r.Data); read > maxShareRead {
				return nil, fmt.Errorf("%w: conversation too large to share (more than %d bytes of skills); share a shorter one", ErrInvalid, maxShareRead)
			}
			var s struct {
				SkillID string `json:"skill_id"`
			}
			if json.Unmarshal(r.Data, &s) != nil {
				return nil, fmt.Errorf("read step %d of transcript: %w", r.Seq, store.ErrCorrupt)
			}
			if s.SkillID != "" && !slices.Contains(out, s.SkillID) {
				out = append(out, s.SkillID)
			}
			after = r.Seq
		}
	}
}

// readSharedBranch reads the steps of the current branch and passes them to observe.
// It omits the turns of inputs with numbers greater than ended. It reads no other
// branches, and stops as soon as a limit is exceeded.
func (e *Engine) readSharedBranch(ctx context.Context, id string, ended int64, images bool, observe func(*step)) (*sharedBranch, error) {
	last, err := e.db.Events.Last(ctx, id)
	if err != nil {
		return nil, err
	}
	numbers, err := readPath(ctx, e.db.Events, id, last)
	if err != nil {
		return nil, err
	}
	out, read := &sharedBranch{}, 0
	for len(numbers) > 0 {
		rows, err := e.db.Events.Read(ctx, id, numbers[0]-1, sharePage)
		if err != nil {
			return nil, err
		}
		n := 0
		for ; n < len(rows) && n < len(numbers) && rows[n].Seq == numbers[n]; n++ {
			if read += len(rows[n].Data); read > maxShareRead {
				return nil, fmt.Errorf("%w: conversation too large to share (more than %d bytes with results of tools); share a shorter branch", ErrInvalid, maxShareRead)
			}
			s, err := readStep(rows[n])
			if err != nil {
				return nil, err
			}
			if s.Turn > ended {
				continue
			}
			observe(&s)
			if out.add(s, images); out.size > MaxShareBytes {
				return nil, tooLarge(out.size)
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("read step %d of transcript: %w", numbers[0], store.ErrCorrupt)
		}
		numbers = numbers[n:]
	}
	out.limitUnshared()
	return out, nil
}

// add adds a step. It drops the parts that are not shared, so that the others fit in
// memory.
func (b *sharedBranch) add(s step, images bool) {
	s.Start, s.Notice, s.Updated = nil, nil, nil
	if s.Loaded != nil {
		s.Loaded.Text, s.Loaded.Files = "", nil
	}
	if s.Compacted != nil {
		s.Compacted.Text = ""
	}
	if r := s.Result; r != nil {
		b.addUnshared(r.Text)
		b.images += len(r.Images)
		r.Text, r.Instructions = "", ""
		if !images {
			r.Images = nil
		}
		for _, i := range r.Images {
			b.size += base64.StdEncoding.EncodedLen(len(i.Data))
		}
	}
	if m := s.Message; m != nil {
		b.size += len(m.Text)
		for _, c := range m.Calls {
			b.addUnshared(c.Arguments)
		}
		for _, t := range m.Thinking {
			b.addUnshared(t.Text)
		}
		m.Thinking = nil
	}
	b.steps = append(b.steps, s)
	if b.addedSize > 2*maxUnsharedText {
		b.limitUnshared()
	}
}

func (b *sharedBranch) addUnshared(text string) {
	if text != "" {
		b.unshared, b.addedSize = append(b.unshared, text), b.addedSize+len(text)
	}
}

// limitUnshared drops the oldest unshared texts beyond the limit.
func (b *sharedBranch) limitUnshared() {
	size := 0
	for i := len(b.unshared) - 1; i >= 0; i-- {
		if size+len(b.unshared[i]) > maxUnsharedText {
			b.unshared = append([]string(nil), b.unshared[i+1:]...)
			break
		}
		size += len(b.unshared[i])
	}
	b.addedSize = size
}

func tooLarge(size int) error {
	return fmt.Errorf("%w: conversation too large to share (%d bytes, limit %d); share it without images, or a shorter branch", ErrInvalid, size, MaxShareBytes)
}
