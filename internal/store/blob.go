package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// blobPart is how much of a file is read at once.
const blobPart = 256 << 10

// Blobs keeps files by the SHA-256, in hexadecimal, of what is in them. The same file
// is kept once, however many versions have it.
type Blobs struct{ c conn }

// Put keeps files that are not there yet, all or none, and returns their hashes. A
// file that no version names is removed by [Blobs.Sweep] some time after it was last
// put.
func (t Blobs) Put(ctx context.Context, files ...[]byte) ([]string, error) {
	hashes := make([]string, len(files))
	err := t.c.atomic(ctx, func(c conn) error {
		for i, data := range files {
			sum := sha256.Sum256(data)
			hashes[i] = hex.EncodeToString(sum[:])
			if err := c.putBlob(ctx, hashes[i], data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("keep %d files: %w", len(files), err)
	}
	return hashes, nil
}

func (c conn) putBlob(ctx context.Context, hash string, data []byte) error {
	if len(data) > MaxValue {
		return fmt.Errorf("%w: a file has %d bytes, more than %d", ErrInvalid, len(data), MaxValue)
	}
	added, err := c.exec(ctx, `INSERT INTO blobs (sha256, size, touched) VALUES ($1, $2, `+c.db.dialect.now+`)
		ON CONFLICT (sha256) DO NOTHING`, hash, len(data))
	if err != nil {
		return err
	}
	if added == 0 {
		_, err := c.exec(ctx, "UPDATE blobs SET touched = "+c.db.dialect.now+" WHERE sha256 = $1", hash)
		return err
	}
	for part := 0; len(data) > 0; part++ {
		n := min(blobPart, len(data))
		if err := c.insert(ctx, "blob_parts", "sha256, part, data", []any{hash, part, data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Size returns how many bytes a file has.
func (t Blobs) Size(ctx context.Context, hash string) (int64, error) {
	n, err := scalar[int64](ctx, t.c, "SELECT size FROM blobs WHERE sha256 = $1", hash)
	if err != nil {
		return 0, fmt.Errorf("file %.64q: %w", hash, err)
	}
	return n, nil
}

// Read returns a file whole: at most [MaxValue] bytes. One that is damaged is
// [ErrCorrupt].
func (t Blobs) Read(ctx context.Context, hash string) ([]byte, error) {
	var out bytes.Buffer
	if _, err := t.WriteTo(ctx, &out, hash); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// WriteTo writes a file to w, some of it at a time, and returns how much that was.
// Between the writes nothing of the database is held. That the file is damaged is
// known at its end only: then it fails with [ErrCorrupt]. An error of w is returned
// as it is.
func (t Blobs) WriteTo(ctx context.Context, w io.Writer, hash string) (int64, error) {
	size, err := t.Size(ctx, hash)
	if err != nil {
		return 0, err
	}
	var written int64
	sum := sha256.New()
	for part := 0; written < size; part++ {
		data, err := scalar[[]byte](ctx, t.c, "SELECT data FROM blob_parts WHERE sha256 = $1 AND part = $2", hash, part)
		if err != nil {
			return written, fmt.Errorf("file %.64q: part %d: %w", hash, part, err)
		}
		sum.Write(data)
		n, err := w.Write(data)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	if written != size || hex.EncodeToString(sum.Sum(nil)) != hash {
		return written, fmt.Errorf("file %.64q: %w", hash, ErrCorrupt)
	}
	return written, nil
}

// Swept is what was removed.
type Swept struct {
	Files int64
	Bytes int64
}

// sweepAtOnce bounds what one transaction removes, so that others get their turn.
const sweepAtOnce = 200

// Sweep removes the files that no version names, and that were put, or named for the
// last time, before the grace began. By then an upload has to be over.
func (t Blobs) Sweep(ctx context.Context, grace time.Duration) (Swept, error) {
	var total Swept
	for {
		removed, err := t.sweep(ctx, grace)
		if err != nil {
			return total, fmt.Errorf("remove files that nothing names: %w", err)
		}
		for _, size := range removed {
			total.Files++
			total.Bytes += size.V
		}
		if len(removed) < sweepAtOnce {
			return total, nil
		}
	}
}

func (t Blobs) sweep(ctx context.Context, grace time.Duration) (removed []value[int64], err error) {
	err = t.c.atomic(ctx, func(c conn) error {
		removed, err = changed[value[int64]](ctx, c, `DELETE FROM blobs WHERE sha256 IN (
			SELECT b.sha256 FROM blobs b WHERE b.touched < `+c.db.dialect.now+` - $1
			AND NOT EXISTS (SELECT 1 FROM version_files f WHERE f.sha256 = b.sha256)
			ORDER BY b.touched LIMIT $2) RETURNING size`, grace.Milliseconds(), sweepAtOnce)
		return err
	})
	return removed, err
}

// loosen begins the grace of the files of versions that are about to be removed.
func (c conn) loosen(ctx context.Context, where string, args ...any) error {
	_, err := c.exec(ctx, "UPDATE blobs SET touched = "+c.db.dialect.now+` WHERE sha256 IN (
		SELECT f.sha256 FROM version_files f JOIN versions v ON v.id = f.version_id WHERE `+where+")", args...)
	return err
}
