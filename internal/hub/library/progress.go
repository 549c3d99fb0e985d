package library

import "context"

// Phase is a step of reading or importing a source.
type Phase string

const (
	Fetching  Phase = "fetch"   // reading the source
	Comparing Phase = "compare" // comparing its skills with existing ones
	Importing Phase = "import"  // importing its skills
)

// Progress describes how far [Library.Inspect] or [Library.Import] has advanced.
type Progress struct {
	Phase Phase `json:"phase" enum:"fetch,compare,import"`
	Done  int64 `json:"done" doc:"Number of skills; of bytes or objects in the phase fetch"`
	Total int64 `json:"total,omitempty" doc:"Absent if unknown"`
}

type progressKey struct{}

// WithProgress returns a context with which [Library.Inspect] and [Library.Import]
// call f as they advance. Calls are not concurrent.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

func reportProgress(ctx context.Context, phase Phase, done, total int64) {
	if f, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		f(Progress{phase, done, total})
	}
}
