package library

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// ReviewStatus describes the approvals that a version needs before it can be
// published, and its history.
type ReviewStatus struct {
	Missing  []MissingApproval `json:"missing" nullable:"false" doc:"Approvals that a version awaits"`
	Requests []ChangeRequest   `json:"requests" nullable:"false" doc:"Open requests for changes of this version or of earlier ones, which block it"`
	History  []ReviewEvent     `json:"history" nullable:"false" doc:"Oldest first"`
	Approve  bool              `json:"canApprove" doc:"Whether you may approve the version, and that would change something"`
	Suffices bool              `json:"approvalSuffices" doc:"Whether the version would be approved if you approved it; otherwise it would await others"`
}

// ReviewEvent is an event in the history of a version.
type ReviewEvent struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind" enum:"uploaded,checked,commented,resolved,reopened,approved,changes-requested,rejected,undone,dismissed,published,withdrawn"`
	By   string    `json:"by,omitempty" doc:"ID of the user"`
	Note string    `json:"note,omitempty" doc:"Changelog line, comment of the reviewer, or reason"`
	Path string    `json:"path,omitempty"`
	Line int64     `json:"line,omitempty"`
}

// maxHistoryRecords is the maximum number of audit records from which the history of a
// version is derived.
const maxHistoryRecords = 500

// ReviewStatus returns the status of the review of a version. Like
// [Library.Comments], it is for users who may comment on the version.
func (l *Library) ReviewStatus(ctx context.Context, p account.Principal, id string, number int64) (*ReviewStatus, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	if !h.mayComment(p, v) {
		return nil, &account.DeniedError{Action: account.SkillComment}
	}
	out := ReviewStatus{Missing: []MissingApproval{}}
	if out.Requests, err = h.openRequests(ctx, &l.db.Tables, p, v); err != nil {
		return nil, err
	}
	if facts(v).IsWaiting() {
		if out.Missing, err = h.missingApprovals(ctx, newApprovalReader(&l.db.Tables, p), v, v.Approvers); err != nil {
			return nil, err
		}
	}
	if out.Approve, out.Suffices, err = h.previewApproval(ctx, &l.db.Tables, p, v); err != nil {
		return nil, err
	}
	if v.Review == Approved {
		out.Requests = []ChangeRequest{} // it was approved before
	}
	if out.History, err = l.history(ctx, v); err != nil {
		return nil, err
	}
	if !h.isAuthorOrReviewer(p, v) {
		out.removeNotes()
	}
	return &out, nil
}

// removeNotes removes the notes that only the uploader and the reviewers of a version
// may read.
func (s *ReviewStatus) removeNotes() {
	for i := range s.Requests {
		s.Requests[i].Note = ""
	}
	for i := range s.History {
		if s.History[i].Kind != "uploaded" {
			s.History[i].Note = ""
		}
	}
}

// history returns the events of a version. It derives most of them from the audit log,
// whose old records may have been deleted.
func (l *Library) history(ctx context.Context, v store.Version) ([]ReviewEvent, error) {
	records, err := l.db.Audit.List(ctx, store.AuditQuery{Subject: v.SkillID, Decision: "allowed", Limit: maxHistoryRecords})
	if err != nil {
		return nil, err
	}
	out := []ReviewEvent{{At: v.Created, Kind: "uploaded", By: v.CreatedBy, Note: untrusted.New(v.Changelog).ForPage()}}
	if !readMeta(v.Meta).Unscanned {
		out = append(out, ReviewEvent{At: v.Created, Kind: "checked"})
	}
	slices.Reverse(records)
	for _, r := range records {
		out = append(out, eventsOf(r, v)...)
	}
	return out, nil
}

// historyDetails are the fields of the details of audit records from which events are
// derived.
type historyDetails struct {
	Version int64           `json:"version"`
	From    json.RawMessage `json:"from"` // a number, or a source
	To      int64           `json:"to"`
	Review  Review          `json:"review"`
	Note    string          `json:"note"`
	Change  string          `json:"change"`
	Path    string          `json:"path"`
	Line    int64           `json:"line"`
	Current int64           `json:"current"`
}

// eventsOf returns the events of a version that an audit record describes.
func eventsOf(r store.AuditRecord, v store.Version) []ReviewEvent {
	var d historyDetails
	if json.Unmarshal(r.Details, &d) != nil {
		return nil
	}
	var out []ReviewEvent
	add := func(kind, note string) {
		out = append(out, ReviewEvent{At: r.At, Kind: kind, By: r.Actor, Note: untrusted.New(note).ForPage(), Path: d.Path, Line: d.Line})
	}
	mine := d.Version == v.Number
	switch account.Action(r.Action) {
	case account.SkillReview:
		if kind := map[Review]string{Approved: "approved", ChangesRequested: "changes-requested", Rejected: "rejected", Pending: "undone"}[d.Review]; mine && kind != "" {
			add(kind, d.Note)
		}
		if mine && d.Current != 0 && d.Current != v.Number {
			add("withdrawn", "")
		}
	case account.SkillComment:
		if kind := map[string]string{"added": "commented", "resolved": "resolved", "reopened": "reopened"}[d.Change]; mine && kind != "" {
			add(kind, "")
		}
	case account.SkillDismiss:
		if mine {
			add("dismissed", d.Note)
		}
	case account.SkillChange:
		var from int64
		_ = json.Unmarshal(d.From, &from)
		switch v.Number {
		case d.To:
			add("published", "")
		case from:
			add("withdrawn", "")
		}
	}
	if d.Current == v.Number {
		add("published", "")
	}
	return out
}
