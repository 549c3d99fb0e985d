package library_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
)

func isReviewError(err error) bool {
	_, ok := errors.AsType[*library.ReviewError](err)
	return ok
}

// A new skill has no version to keep: its newest one is current, and its code waits.
func TestNewSkillShowsItsNewestVersion(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "#!/bin/sh\n")
		second := w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
		wantStates(t, w, s, "2 pending current", "1 pending")
		w.decide(s.Digest, s, library.Approved) // the older one, which is better than one that waits
		wantStates(t, w, s, "2 pending", "1 approved current")
		w.decide(second.Digest, s, library.Approved)
		wantStates(t, w, s, "2 approved current", "1 superseded")
		w.decide(s.Digest, s, library.Rejected)
		wantStates(t, w, s, "2 approved current", "1 rejected")
		w.decide(second.Digest, s, library.Pending) // there is no other
		wantStates(t, w, s, "2 pending current", "1 rejected")
	})
}

// Only the uploader and the reviewers of a version that waits may name it by its digest.
func TestPendingVersionIsForItsUploader(t *testing.T) {
	w := sqlite(t, nil)
	s := w.upload(w.ada, w.team, "pdf", "one")
	second := w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
	ref := library.Ref{Name: "pdf", Digest: second.Digest}
	for _, tt := range []struct {
		who    account.Principal
		served int
	}{{w.ada, 1}, {w.meg, 1}, {w.bob, 0}} {
		list := must(must(w.lib.BoundSource(tt.who, "agent", []library.Ref{ref}))(t).List(w.ctx))(t)
		if len(list.Entries) != tt.served || len(list.Problems) != 1-tt.served {
			t.Errorf("%s gets %+v", tt.who.Name, list)
		}
		if packed, err := w.lib.PackVersion(w.ctx, tt.who, s.ID, 2); tt.served == 1 && err != nil || tt.served == 0 && !isReviewError(err) {
			t.Errorf("%s tries %+v, %v", tt.who.Name, packed, err)
		}
	}
	w.decide(second.Digest, s, library.Approved)
	if r := must(w.lib.Resolve(w.ctx, w.bob, ref))(t); !r.Version.Current {
		t.Errorf("approved, it is %+v", r.Version)
	}
}

func (w *fixture) decide(digest string, s *library.Skill, r library.Review) {
	w.t.Helper()
	mustDo(w.t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Digest: digest, Review: r}))
}

func wantStates(t *testing.T, w *fixture, s *library.Skill, want ...string) {
	t.Helper()
	wantEqual(t, names(must(w.lib.Versions(w.ctx, w.bob, s.ID, 0, 0))(t), func(v *library.Version) string {
		text := fmt.Sprint(v.Number, " ", v.State)
		if v.Current {
			text += " current"
		}
		return text
	}), want)
}

// A reviewer who requests changes says which. The version does not run, and its managers
// are notified.
func TestChangesRequested(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one", "run.sh", "#!/bin/sh\n")
		w.decide(s.Digest, s, library.Approved)
		second := w.version(w.ada, s, "two", "run.sh", "#!/bin/sh\n")
		d := library.Decision{Digest: second.Digest, Review: library.ChangesRequested, Note: " "}
		wantError(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, d), library.ErrInvalid)
		d.Note = "quote the path"
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, d))
		wantStates(t, w, s, "2 changes-requested", "1 approved current")
		for _, who := range []account.Principal{w.ada, w.meg} {
			if v := must(w.lib.Version(w.ctx, who, s.ID, 2))(t); v.Review != library.Rejected || v.Note != d.Note || v.Runnable {
				t.Errorf("the version is %+v for %s", v, who.Name)
			}
		}
		news, _, err := w.lib.Notifications(w.ctx, w.meg, s.ID, true, store.Page{})
		mustDo(t, err)
		if len(news) == 0 || news[0].Details.Review != library.ChangesRequested || news[0].Details.Note != d.Note {
			t.Errorf("the notifications are %+v", news)
		}
		waiting, _, err := w.lib.ListPending(w.ctx, w.meg, nil, store.Page{})
		mustDo(t, err)
		wantEqual(t, len(waiting), 0)
		w.decide(second.Digest, s, library.Rejected) // the last decision counts
		wantStates(t, w, s, "2 rejected", "1 approved current")
		w.decide(second.Digest, s, library.Approved)
		wantStates(t, w, s, "2 approved current", "1 superseded")
	})
}

// A version whose metadata cannot be read may have code, so that it is awaiting review.
func TestUnreadableMetadataCountsAsCode(t *testing.T) {
	each(t, func(t *testing.T, w *fixture) {
		s := w.upload(w.ada, w.team, "pdf", "one")
		for i, meta := range []string{`"none"`, `{"scripts":"many"}`, ""} {
			v := must(w.db.Versions.Add(w.ctx, store.Version{SkillID: s.ID, Digest: fmt.Sprint("sha256:", i), CreatedBy: string(w.ada.User), Meta: []byte(meta)}, nil, nil))(t)
			if got := must(w.lib.Version(w.ctx, w.meg, s.ID, v.Number))(t); !got.Code || got.State != skillstate.Pending {
				t.Errorf("with the metadata %q, the version is %+v", meta, got)
			}
			if err := w.lib.SetCurrentVersion(w.ctx, w.ada, s.ID, v.Number); !isReviewError(err) {
				t.Errorf("with the metadata %q, making it current returned %v", meta, err)
			}
		}
	})
}
