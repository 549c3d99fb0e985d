package hub

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

// Limits of drafts.
const (
	maxLargeDrafts = 8
	largeDraft     = 1 << 20
	draftTime      = time.Minute
	draftValues    = 100_000 // JSON values in a body: parsed values take many times their size
)

// DraftFileJSON is a file of a draft skill.
type DraftFileJSON struct {
	Path   string `json:"path" maxLength:"1024" doc:"For example SKILL.md or scripts/run.py"`
	Text   string `json:"text,omitempty" doc:"Content"`
	Base64 []byte `json:"base64,omitempty" doc:"Content that is not text"`
}

// Resolve implements [huma.ResolverWithPath].
func (f *DraftFileJSON) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if f.Text == "" || len(f.Base64) == 0 {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "has text and base64; send one of them"}}
}

// DraftJSON is a skill in progress. Its files have the limits of an upload.
type DraftJSON struct {
	Files   []DraftFileJSON `json:"files" nullable:"false" doc:"SKILL.md and all other files"`
	SkillID string          `json:"skill_id,omitempty" maxLength:"64" doc:"The skill to add a version to; absent for a new skill"`
}

func (d DraftJSON) draft() library.Draft {
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

// addDraftOperation adds an operation whose body may contain the files of a
// skill.
func addDraftOperation[I, O any](s *server, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes, op.BodyReadTimeout = maxBody, draftTime
	op.Middlewares = append(op.Middlewares, s.queueLargeDraft)
	addFor(s, op, 2*draftTime, f)
}

// queueLargeDraft makes large bodies wait for a slot before they are read into
// memory.
func (s *server) queueLargeDraft(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	r.Body = &limitedJSON{ReadCloser: r.Body, left: draftValues, onExceeded: func() { requestInfoFrom(ctx.Context()).tooManyValues = true }}
	p := account.FromContext(ctx.Context())
	if p.Anonymous() || 0 <= r.ContentLength && r.ContentLength <= largeDraft {
		next(ctx)
		return
	}
	waiting, stop := context.WithTimeoutCause(ctx.Context(), draftTime, errTimeout)
	defer stop()
	leave, err := s.drafts.Acquire(waiting, string(p.User))
	if errors.Is(err, queue.ErrFull) {
		err = &Problem{Status: 503, Code: "busy", Detail: "too many large drafts in progress", Next: "try again in a few seconds"}
	}
	if err != nil {
		s.writeProblem(w, r, err)
		return
	}
	defer leave()
	next(ctx)
}
