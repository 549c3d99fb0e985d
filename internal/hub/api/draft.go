package api

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
)

// Draft limits.
const (
	MaxLargeDrafts = 8
	largeDraft     = 1 << 20
	draftTime      = time.Minute
	draftValues    = 100_000 // JSON values per body; parsed values take much more memory
)

// DraftFile is a file of a [Draft], as text or as Base64.
type DraftFile struct {
	Path   string `json:"path" maxLength:"1024" doc:"For example SKILL.md or scripts/run.py"`
	Text   string `json:"text,omitempty" doc:"Content"`
	Base64 []byte `json:"base64,omitempty" doc:"Content that is not text"`
}

// Resolve implements [huma.ResolverWithPath].
func (f *DraftFile) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if f.Text == "" || len(f.Base64) == 0 {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "has text and base64; send one of them"}}
}

// Draft is an unsaved skill. Upload limits apply to its files.
type Draft struct {
	Files   []DraftFile `json:"files" nullable:"false" doc:"SKILL.md and all other files"`
	SkillID string      `json:"skill_id,omitempty" maxLength:"64" doc:"The skill to add a version to; absent for a new skill"`
}

// ToLibrary converts the draft to a [library.Draft].
func (d Draft) ToLibrary() library.Draft {
	out := library.Draft{Of: d.SkillID, Files: make([]library.DraftFile, len(d.Files))}
	for i, f := range d.Files {
		data := f.Base64
		if f.Text != "" {
			data = []byte(f.Text)
		}
		out.Files[i] = library.DraftFile{Path: f.Path, Data: data}
	}
	return out
}

// AddDraft adds an operation whose request body may contain a skill's files.
func AddDraft[I, O any](s *Server, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes, op.BodyReadTimeout = MaxBody, draftTime
	op.Middlewares = append(op.Middlewares, s.queueLargeDraft)
	AddFor(s, op, 2*draftTime, f)
}

// queueLargeDraft makes large request bodies wait for a slot before they are read
// into memory.
func (s *Server) queueLargeDraft(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	r.Body = &limitedJSON{ReadCloser: r.Body, left: draftValues, onExceeded: func() { RequestFrom(ctx.Context()).tooManyValues = true }}
	p := account.FromContext(ctx.Context())
	if p.Anonymous() || 0 <= r.ContentLength && r.ContentLength <= largeDraft {
		next(ctx)
		return
	}
	waiting, stop := context.WithTimeoutCause(ctx.Context(), draftTime, ErrTimeout)
	defer stop()
	leave, err := s.Drafts.Acquire(waiting, string(p.User))
	if errors.Is(err, queue.ErrFull) {
		err = &Problem{Status: 503, Code: "busy", Detail: "too many large drafts in progress", Next: "try again in a few seconds"}
	}
	if err != nil {
		s.WriteProblem(w, r, err)
		return
	}
	defer leave()
	next(ctx)
}
