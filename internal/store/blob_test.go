package store_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func noise(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	r.Read(data)
	return data
}

func TestFilesAreDeduplicatedByContent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, store.MaxValue} {
			data := noise(size)
			sum := sha256.Sum256(data)
			hash := must(db.Blobs.Put(ctx, data, data))(t)
			wantEqual(t, hash, []string{hex.EncodeToString(sum[:]), hex.EncodeToString(sum[:])})
			if got := must(db.Blobs.Read(ctx, hash[0]))(t); !bytes.Equal(got, data) {
				t.Errorf("%d bytes come back as %d others", size, len(got))
			}
			if n := must(db.Blobs.Size(ctx, hash[0]))(t); n != int64(size) {
				t.Errorf("%d bytes are said to be %d", size, n)
			}
		}
		_, err := db.Blobs.Put(ctx, []byte("a"), make([]byte, store.MaxValue+1))
		wantError(t, err, store.ErrInvalid)
		sum := sha256.Sum256([]byte("a"))
		_, err = db.Blobs.Read(ctx, hex.EncodeToString(sum[:])) // all or none
		wantError(t, err, store.ErrNotFound)
	})
}

type fullWriter struct{ err error }

func (w fullWriter) Write(p []byte) (int, error) { return 3, w.err }

func TestFileWriterFails(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		hash := must(db.Blobs.Put(t.Context(), noise(1<<20)))(t)[0]
		errGone := errors.New("the client is gone")
		n, err := db.Blobs.WriteTo(t.Context(), fullWriter{errGone}, hash)
		if n != 3 || !errors.Is(err, errGone) {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
}

func TestUnreferencedFilesAreRemovedAfterGrace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		const hour = time.Hour
		skill := newSkill(t, db, store.Public, "pdf")
		newVersion(t, db, skill.ID, "used by two")
		other := newSkill(t, db, store.Public, "other")
		newVersion(t, db, other.ID, "used by two")
		newVersion(t, db, skill.ID, "used by one")
		loose := must(db.Blobs.Put(ctx, []byte("loose"), []byte("put again")))(t)

		wantEqual(t, must(db.Blobs.Sweep(ctx, hour))(t), store.SweepResult{})
		store.ShiftClock(db, 2*hour)
		must(db.Blobs.Put(ctx, []byte("put again")))(t)
		wantEqual(t, must(db.Blobs.Sweep(ctx, hour))(t), store.SweepResult{Files: 1, Bytes: 5})
		_, err := db.Blobs.Read(ctx, loose[0])
		wantError(t, err, store.ErrNotFound)
		must(db.Blobs.Read(ctx, loose[1]))(t)

		// What a version named has its grace from when it no longer does.
		mustDo(t, db.Skills.Delete(ctx, skill.ID))
		wantEqual(t, must(db.Blobs.Sweep(ctx, hour))(t), store.SweepResult{})
		store.ShiftClock(db, 4*hour)
		wantEqual(t, must(db.Blobs.Sweep(ctx, hour))(t), store.SweepResult{Files: 2, Bytes: int64(len("put again") + len("used by one"))})
		v := must(db.Versions.Get(ctx, other.ID, 1))(t)
		must(db.Blobs.Read(ctx, must(db.Versions.File(ctx, v.ID, "SKILL.md"))(t).SHA256))(t)
	})
}

func TestConcurrentSweepAndUpload(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "pdf")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				text := []byte{byte(i)}
				for {
					hash, err := db.Blobs.Put(ctx, text)
					if err == nil {
						_, err = db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: hash[0]}, []store.File{{Path: "SKILL.md", SHA256: hash[0], Size: 1}}, nil)
					}
					if !errors.Is(err, store.ErrNotFound) && !isBusy(err) {
						mustDo(t, err)
						return
					}
				}
			})
			wg.Go(func() {
				if _, err := db.Blobs.Sweep(ctx, -time.Hour); err != nil && !isBusy(err) && !errors.Is(err, store.ErrReferenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantEqual(t, must(db.Check(ctx))(t).Problems, []string(nil))
	})
}
