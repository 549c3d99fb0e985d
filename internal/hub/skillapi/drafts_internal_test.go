package skillapi

import (
	"errors"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

func TestDraftQueryErrorNamesPosition(t *testing.T) {
	errs := (&draftQueries{Queries: []string{"ships", ""}}).Resolve(nil, huma.NewPathBuffer([]byte("body"), 0))
	if len(errs) != 1 {
		t.Fatalf("got %d errors, want 1", len(errs))
	}
	var detail *huma.ErrorDetail
	if !errors.As(errs[0], &detail) {
		t.Fatalf("got a %T, want an ErrorDetail", errs[0])
	}
	if detail.Location != "body.queries[1]" || detail.Message != "must have 1 to 4000 bytes" {
		t.Errorf("got %q: %q", detail.Location, detail.Message)
	}
}
