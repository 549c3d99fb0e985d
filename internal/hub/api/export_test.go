package api

import (
	"context"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// AddWithHuma is like [AddFor], but serves the operation with [huma.Register].
func AddWithHuma[I, O any](s *Server, op huma.Operation, timeout time.Duration, f func(ctx context.Context, in *I) (*O, error)) {
	s.prepare(&op, timeout, reflect.TypeFor[I](), reflect.TypeFor[O]())
	huma.Register(s, op, func(ctx context.Context, in *I) (out *O, err error) {
		err = s.limit(ctx, op.OperationID, timeout, func(ctx context.Context) error {
			out, err = f(ctx, in)
			return err
		})
		return out, err
	})
}
