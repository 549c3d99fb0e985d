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

// blobPartSize is the size, in bytes, of the parts in which a file is stored.
const blobPartSize = 256 << 10

// Blobs stores files under the hexadecimal SHA-256 hash of their content.
// Versions with identical files share the stored copy.
type Blobs struct{ c conn }

// Put stores the files that are not stored yet, all or none, and returns the
// hashes of all files. [Blobs.Sweep] later deletes the files that no version
// refers to.
func (t Blobs) Put(ctx context.Context, files ...[]byte) ([]string, error) {
	hashes := make([]string, len(files))
	err := t.c.inTransaction(ctx, func(c conn) error {
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
		return nil, fmt.Errorf("store %d files: %w", len(files), err)
	}
	return hashes, nil
}

func (c conn) putBlob(ctx context.Context, hash string, data []byte) error {
	if len(data) > MaxValue {
		return fmt.Errorf("%w: file has %d bytes, limit %d", ErrInvalid, len(data), MaxValue)
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
		n := min(blobPartSize, len(data))
		if err := c.insert(ctx, "blob_parts", "sha256, part, data", []any{hash, part, data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Size returns the size of a file in bytes.
func (t Blobs) Size(ctx context.Context, hash string) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT size FROM blobs WHERE sha256 = $1", hash)
	if err != nil {
		return 0, fmt.Errorf("get size of file %.64q: %w", hash, err)
	}
	return n, nil
}

// Read returns a whole file. It fails with [ErrCorrupt] if the file is damaged.
func (t Blobs) Read(ctx context.Context, hash string) ([]byte, error) {
	var out bytes.Buffer
	if _, err := t.WriteTo(ctx, &out, hash); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// WriteTo writes a file to w in parts and returns the number of bytes written.
// It holds no database connection between writes. If the file is damaged,
// WriteTo fails with [ErrCorrupt] after the last part. Errors from w are
// returned unchanged.
func (t Blobs) WriteTo(ctx context.Context, w io.Writer, hash string) (int64, error) {
	size, err := t.Size(ctx, hash)
	if err != nil {
		return 0, err
	}
	var written int64
	sum := sha256.New()
	for part := 0; written < size; part++ {
		data, err := queryScalar[[]byte](ctx, t.c, "SELECT data FROM blob_parts WHERE sha256 = $1 AND part = $2", hash, part)
		if err != nil {
			return written, fmt.Errorf("read part %d of file %.64q: %w", part, hash, err)
		}
		sum.Write(data)
		n, err := w.Write(data)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	if written != size || hex.EncodeToString(sum.Sum(nil)) != hash {
		return written, fmt.Errorf("read file %.64q: %w", hash, ErrCorrupt)
	}
	return written, nil
}

// SweepResult holds the number and total size of the files a sweep deleted.
type SweepResult struct {
	Files int64
	Bytes int64
}

// sweepBatch is the maximum number of deletions per transaction. Small
// transactions let other writers proceed.
const sweepBatch = 200

// Sweep deletes the files that no version refers to and that were last stored
// or released more than grace ago. An upload must finish within the grace
// period.
func (t Blobs) Sweep(ctx context.Context, grace time.Duration) (SweepResult, error) {
	var total SweepResult
	for {
		removed, err := t.sweep(ctx, grace)
		if err != nil {
			return total, fmt.Errorf("delete unreferenced files: %w", err)
		}
		for _, size := range removed {
			total.Files++
			total.Bytes += size.V
		}
		if len(removed) < sweepBatch {
			return total, nil
		}
	}
}

func (t Blobs) sweep(ctx context.Context, grace time.Duration) (removed []scalarRow[int64], err error) {
	err = t.c.inTransaction(ctx, func(c conn) error {
		removed, err = execReturning[scalarRow[int64]](ctx, c, `DELETE FROM blobs WHERE sha256 IN (
			SELECT b.sha256 FROM blobs b WHERE b.touched < `+c.db.dialect.now+` - $1
			AND NOT EXISTS (SELECT 1 FROM version_files f WHERE f.sha256 = b.sha256)
			ORDER BY b.touched LIMIT $2) RETURNING size`, grace.Milliseconds(), sweepBatch)
		return err
	})
	return removed, err
}

// startGrace starts the grace period for the files of versions that are about
// to be deleted. The where condition selects the versions.
func (c conn) startGrace(ctx context.Context, where string, args ...any) error {
	_, err := c.exec(ctx, "UPDATE blobs SET touched = "+c.db.dialect.now+` WHERE sha256 IN (
		SELECT f.sha256 FROM version_files f JOIN versions v ON v.id = f.version_id WHERE `+where+")", args...)
	return err
}
