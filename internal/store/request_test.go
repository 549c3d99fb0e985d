package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Neither the requests that a user can record nor their responses are unbounded.
// Requests are refused rather than forgotten: a repetition would be executed again.
func TestRecordedRequestsAreBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		since := time.Now().Add(-24 * time.Hour)
		begin := func(principal, label string) error {
			return db.Requests.Begin(ctx, store.Request{Principal: principal, Label: label, Digest: "d"}, since)
		}
		large := strings.Repeat("x", store.MaxResponseBytes/8)
		for i := range 10 {
			label := fmt.Sprint("large", i)
			mustDo(t, begin("user:ada", label))
			mustDo(t, db.Requests.End(ctx, store.Request{Principal: "user:ada", Label: label, Status: 201, Response: large}))
		}
		for i := range 10 {
			r := must(db.Requests.Get(ctx, "user:ada", fmt.Sprint("large", i)))(t)
			if stored := r.Response != ""; stored != (i >= 2) || r.Status != 201 {
				t.Errorf("request %d: status %d, response stored: %t", i, r.Status, stored)
			}
		}
		oldest := must(db.Requests.Oldest(ctx, "user:ada", since))(t)
		wantEqual(t, oldest, must(db.Requests.Get(ctx, "user:ada", "large0"))(t).Created)

		must(store.Exec(ctx, db, `INSERT INTO requests (principal, label, digest, created, status, response)
			WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT 'user:ada', 'l' || CAST(i AS TEXT), 'd', (SELECT MIN(created) FROM requests), 0, '' FROM n`, store.MaxRequests-12))(t)
		mustDo(t, begin("user:ada", "last"))
		wantError(t, begin("user:ada", "more"), store.ErrTooMany)
		wantError(t, begin("user:ada", "last"), store.ErrExists)
		mustDo(t, begin("user:bob", "more"))
		since = time.Now().Add(time.Hour) // the earlier ones have expired
		mustDo(t, begin("user:ada", "more"))
	})
}
