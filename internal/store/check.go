package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Report is the result of [DB.Check] and [CheckBackup].
type Report struct {
	Skills   int64
	Versions int64
	Files    int64       // stored files, each counted once
	Bytes    int64       // size of these files
	Orphans  SweepResult // files that no version refers to; [Blobs.Sweep] deletes them
	// Problems describes up to [MaxPage] inconsistencies, one sentence each. It
	// is empty if the database is intact.
	Problems []string
}

// Check reads the whole database, including every file, and reports
// inconsistencies. It does not modify the database.
func (db *DB) Check(ctx context.Context) (Report, error) {
	var r Report
	err := db.check(ctx, &r)
	if err != nil {
		return Report{}, fmt.Errorf("check database: %w", err)
	}
	return r, nil
}

func (db *DB) check(ctx context.Context, r *Report) error {
	if err := db.checkIntegrity(ctx); err != nil {
		return err
	}
	if err := db.countItems(ctx, r); err != nil {
		return err
	}
	if err := db.checkReferences(ctx, r); err != nil {
		return err
	}
	return db.checkFiles(ctx, r)
}

// checkIntegrity adds the problems found by SQLite's integrity check. PostgreSQL
// has none; it reports damage when it reads data.
func (db *DB) checkIntegrity(ctx context.Context) error {
	if db.path == "" {
		return nil
	}
	results, err := queryScalars[string](ctx, conn{db: db}, "PRAGMA integrity_check(10)")
	if err != nil {
		return err
	}
	if len(results) != 1 || results[0] != "ok" {
		return fmt.Errorf("%w: %.200q", ErrCorrupt, results)
	}
	broken, err := queryScalars[string](ctx, conn{db: db}, `SELECT DISTINCT "table" FROM pragma_foreign_key_check`)
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("%w: rows of %q refer to missing rows", ErrCorrupt, broken)
	}
	return err
}

const orphans = "FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM version_files f WHERE f.sha256 = b.sha256)"

// countItems counts skills, versions, stored files and orphaned files.
func (db *DB) countItems(ctx context.Context, r *Report) error {
	for _, q := range []struct {
		to    *int64
		query string
	}{
		{&r.Skills, "SELECT count(*) FROM skills"},
		{&r.Versions, "SELECT count(*) FROM versions"},
		{&r.Files, "SELECT count(*) FROM blobs"},
		{&r.Bytes, "SELECT CAST(COALESCE(sum(size), 0) AS BIGINT) FROM blobs"},
		{&r.Orphans.Files, "SELECT count(*) " + orphans},
		{&r.Orphans.Bytes, "SELECT CAST(COALESCE(sum(b.size), 0) AS BIGINT) " + orphans},
	} {
		n, err := queryScalar[int64](ctx, conn{db: db}, q.query)
		if err != nil {
			return err
		}
		*q.to = n
	}
	return nil
}

// checkReferences looks for references to missing rows in columns without a
// foreign key.
func (db *DB) checkReferences(ctx context.Context, r *Report) error {
	for _, q := range []struct{ problem, query string }{
		{"current version of skill %q not found", `SELECT s.id FROM skills s WHERE s.current <> ''
			AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.id = s.current AND v.skill_id = s.id) LIMIT $1`},
		{"skill %q is not listed in its namespace", `SELECT s.id FROM skills s
			WHERE NOT EXISTS (SELECT 1 FROM listings l WHERE l.skill_id = s.id AND l.namespace = s.namespace AND l.name = s.name) LIMIT $1`},
		{"file count of version %q is wrong", `SELECT v.id FROM versions v
			WHERE v.files <> (SELECT count(*) FROM version_files f WHERE f.version_id = v.id) LIMIT $1`},
		{"a version records a wrong size for file %q", `SELECT DISTINCT b.sha256 FROM version_files f
			JOIN blobs b ON b.sha256 = f.sha256 WHERE f.size <> b.size LIMIT $1`},
		{"session %q has no owner", `SELECT s.id FROM sessions s
			WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = s.owner) LIMIT $1`},
	} {
		found, err := queryScalars[string](ctx, conn{db: db}, q.query, MaxPage)
		if err != nil {
			return err
		}
		for _, id := range found {
			r.addProblem(q.problem, id)
		}
	}
	return nil
}

// checkFiles reads every file and verifies its hash.
func (db *DB) checkFiles(ctx context.Context, r *Report) error {
	after := ""
	for {
		hashes, err := queryScalars[string](ctx, conn{db: db}, "SELECT sha256 FROM blobs WHERE sha256 > $1 ORDER BY sha256 LIMIT $2", after, MaxPage)
		if err != nil || len(hashes) == 0 {
			return err
		}
		for _, hash := range hashes {
			_, err := db.Blobs.WriteTo(ctx, io.Discard, hash)
			switch {
			case errors.Is(err, ErrCorrupt):
				r.addProblem("file %q is damaged", hash)
			case errors.Is(err, ErrNotFound):
				stored, err := rowExists(conn{db: db}.requireRow(ctx, "SELECT size FROM blobs WHERE sha256 = $1", hash))
				if err != nil {
					return err
				}
				if stored { // otherwise a sweep has just deleted it
					r.addProblem("a part of file %q is missing", hash)
				}
			case err != nil:
				return err
			}
		}
		after = hashes[len(hashes)-1]
	}
}

// addProblem adds a problem unless there are already [MaxPage].
func (r *Report) addProblem(format, id string) {
	if len(r.Problems) < MaxPage {
		r.Problems = append(r.Problems, fmt.Sprintf(format, id))
	}
}
