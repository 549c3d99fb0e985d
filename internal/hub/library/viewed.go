package library

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// ViewedFiles returns the paths of the files of a version that the principal marked as
// viewed. A file that changed since is not viewed. Number 0 means the current version.
func (l *Library) ViewedFiles(ctx context.Context, p account.Principal, id string, number int64) ([]string, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	if !h.mayComment(p, v) {
		return nil, &account.DeniedError{Action: account.SkillComment}
	}
	viewed, err := l.db.ViewedFiles.List(ctx, string(p.User), id)
	if err != nil {
		return nil, err
	}
	files, err := l.db.Versions.Manifest(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, f := range files {
		hashes[f.Path] = f.SHA256
	}
	out := []string{}
	for _, f := range viewed {
		if hashes[f.Path] == f.SHA256 {
			out = append(out, f.Path)
		}
	}
	return out, nil
}

// SetViewed marks a file of a version as viewed by the principal, or as not viewed.
func (l *Library) SetViewed(ctx context.Context, p account.Principal, id string, number int64, path string, viewed bool) error {
	_, v, err := l.authorizeComment(ctx, p, id, number)
	if err != nil {
		return err
	}
	f, err := l.db.Versions.File(ctx, v.ID, path)
	if isNotFound(err) {
		return invalidf("no file %.200q in version %d", path, v.Number)
	}
	if err != nil {
		return err
	}
	if !viewed {
		f.SHA256 = ""
	}
	return l.db.ViewedFiles.Put(ctx, string(p.User), id, store.ViewedFile{Path: path, SHA256: f.SHA256})
}
