package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func TestLimitsOfNamespace(t *testing.T) {
	s := quota.Default()
	s.Overrides = []quota.Override{{Namespace: "group:big", Limits: quota.Amounts{Skills: 9}}, {Namespace: "user:free"}}
	for n, want := range map[store.Namespace]quota.Amounts{
		"user:ada":   {Bytes: 2_000_000_000, Skills: 2000, Sessions: 10_000},
		"group:team": {Bytes: 2_000_000_000, Skills: 2000},
		"public":     {Bytes: 2_000_000_000, Skills: 2000},
		"group:big":  {Skills: 9},
		"user:free":  {},
	} {
		if got := s.Limits(n); got != want {
			t.Errorf("limits of %s are %+v, want %+v", n, got, want)
		}
	}
}

// Concurrent additions never exceed a limit together, and as many succeed as the limit
// permits.
func TestConcurrentAdditionsStayWithinLimits(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		q := quota.Quotas{Default: quota.Settings{User: quota.Amounts{Bytes: 1000, Sessions: 3}}}
		talk, err := db.Sessions.Create(ctx, store.Session{Owner: "bob"})
		if err != nil {
			t.Fatal(err)
		}
		for name, add := range map[quota.Measure]func(tx *store.Tx, i int) error{
			quota.Sessions: func(tx *store.Tx, _ int) error {
				if err := q.Check(ctx, &tx.Tables, "user:ada", quota.Amounts{Sessions: 1}); err != nil {
					return err
				}
				_, err := tx.Sessions.Create(ctx, store.Session{Owner: "ada"})
				return err
			},
			quota.Bytes: func(tx *store.Tx, i int) error {
				left, err := q.Allowance(ctx, &tx.Tables, "user:bob")
				if err == nil {
					err = left.Add(300)
				}
				if err != nil {
					return err
				}
				return tx.Attachments.Put(ctx, store.Attachment{Session: talk.ID, Path: string(rune('a' + i)), SHA256: strings.Repeat("0", 64)}, make([]byte, 300))
			},
		} {
			t.Run(string(name), func(t *testing.T) {
				var (
					adding sync.WaitGroup
					errs   [8]error
				)
				for i := range errs {
					adding.Go(func() { errs[i] = db.Tx(ctx, func(tx *store.Tx) error { return add(tx, i) }) })
				}
				adding.Wait()
				added := 0
				for _, err := range errs {
					e, exceeded := errors.AsType[*quota.ExceededError](err)
					switch {
					case err == nil:
						added++
					case !exceeded || e.Measure != name:
						t.Error(err)
					}
				}
				if added != 3 {
					t.Errorf("%d were added, want 3", added)
				}
			})
		}
	})
}

// An allowance counts what one transaction adds and removes.
func TestAllowance(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	q := quota.Quotas{Default: quota.Settings{Group: quota.Amounts{Bytes: 10}}}
	left, err := q.Allowance(t.Context(), &db.Tables, "group:g")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		bytes int64
		fits  bool
	}{{6, true}, {5, false}, {4, true}, {1, false}, {-3, true}, {3, true}, {1, false}} {
		if err := left.Add(step.bytes); (err == nil) != step.fits {
			t.Errorf("adding %d returns %v", step.bytes, err)
		}
	}
	free, err := q.Allowance(t.Context(), &db.Tables, "user:u")
	if err == nil {
		err = free.Add(1 << 60)
	}
	if err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// The setting replaces the default as a whole. Lower limits refuse additions, and
// nothing else.
func TestSettingReplacesDefault(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	ctx := context.Background()
	for range 3 {
		if _, err := db.Sessions.Create(ctx, store.Session{Owner: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	q := quota.Quotas{Default: quota.Default()}
	add := quota.Amounts{Sessions: 1, Skills: 1}
	if err := q.Check(ctx, &db.Tables, "user:ada", add); err != nil {
		t.Error(err)
	}
	value, _ := json.Marshal(quota.Settings{User: quota.Amounts{Sessions: 2}})
	if _, err := db.Settings.Set(ctx, store.Setting{Scope: quota.SettingScope, Name: quota.SettingName, Value: value}); err != nil {
		t.Fatal(err)
	}
	err := q.Check(ctx, &db.Tables, "user:ada", add)
	if e, ok := errors.AsType[*quota.ExceededError](err); !ok || *e != (quota.ExceededError{Namespace: "user:ada", Measure: quota.Sessions, Limit: 2, Used: 3, Added: 1}) {
		t.Errorf("got %v", err)
	}
	if err := q.Check(ctx, &db.Tables, "user:ada", quota.Amounts{Skills: 1, Bytes: 1 << 50}); err != nil {
		t.Errorf("for something else: %v", err)
	}
}
