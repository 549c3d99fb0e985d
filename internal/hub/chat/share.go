package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
)

// Sharing configures shares.
type Sharing struct {
	// Off switches sharing off. Nobody can open shares that exist. They can be listed
	// and revoked.
	Off bool
	// Links permits shares that anyone with the link can open without signing in.
	Links bool
	// MaxDays is the maximum lifetime of a share, in days; 0 means 90.
	MaxDays int
	// Secrets returns the stored secrets that a user's conversation may contain, in which
	// the skills with the given store IDs were loaded.
	Secrets func(ctx context.Context, p account.Principal, conversation string, skills []string) ([]StoredSecret, error)
}

// Limits of shares.
const (
	MaxShares        = 100 // maximum number of unexpired shares of a user
	DefaultShareDays = 30
	maxShareDays     = 90 // default of [Sharing.MaxDays]
)

// Audience says who can open a share.
type Audience string

// Audiences.
const (
	Members  Audience = "members" // users who are signed in
	WithLink Audience = "link"    // anyone with the link
)

// Errors of shares.
var (
	// ErrNoSharing is returned by a hub whose conversations cannot be shared,
	// because it has no accounts.
	ErrNoSharing = errors.New("conversations can be shared on hubs with accounts only")
	// ErrSharingOff is returned if the hub does not permit shares.
	ErrSharingOff = errors.New("sharing conversations is switched off on this hub")
	// ErrUnchecked is returned if a share may contain a secret that cannot be
	// decrypted, and so cannot be found.
	ErrUnchecked = errors.New("a stored secret that this conversation used cannot be decrypted, so the share may contain it")
	// ErrNoLinks is returned if the hub does not permit shares without a sign-in.
	ErrNoLinks = errors.New("this hub permits shares for signed-in users only")
	// ErrPreviewChanged is returned if the conversation differs from the preview.
	ErrPreviewChanged = errors.New("the conversation has changed since the preview")
)

// Share describes a frozen snapshot of a conversation. Link, Session and Title are
// set for its owner only.
type Share struct {
	ID       string         `json:"id" doc:"Identifies the share in lists and when it is revoked"`
	Link     string         `json:"link,omitempty" doc:"Secret last part of its address, /shared/LINK. Absent for other users' shares, and in lists for tokens without the scope chat"`
	Session  string         `json:"session,omitempty" doc:"The conversation. Absent for other users' shares"`
	Title    string         `json:"title,omitempty" doc:"Absent for other users' shares"`
	Owner    account.UserID `json:"owner" doc:"The id of a user"`
	Audience Audience       `json:"audience" enum:"members,link" doc:"members: signed-in users; link: anyone with the link"`
	Size     int64          `json:"size" doc:"Bytes of the snapshot with its images and files"`
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires"`
}

func shareOf(s store.Share, own bool) Share {
	out := Share{ID: s.ID, Owner: account.UserID(s.Owner), Audience: Audience(s.Audience), Size: s.Size, Created: s.Created, Expires: s.Expires}
	if own {
		out.Link, out.Session, out.Title = s.Link, s.Session, s.Title
	}
	return out
}

// SharePreview shows what a share of a conversation would contain.
type SharePreview struct {
	Content  *SharedContent `json:"content"`
	Digest   string         `json:"digest" doc:"Confirms the content when it is shared"`
	Size     int64          `json:"size" doc:"Bytes of the snapshot with its images and files"`
	Redacted Redacted       `json:"redacted"`
	// Unchecked are stored secrets that cannot be decrypted.
	Unchecked []UncheckedSecret `json:"unchecked,omitempty" doc:"Stored secrets that cannot be decrypted, so that the content was not searched for them"`
	Refused   bool              `json:"refused,omitempty" doc:"Whether sharing fails because of unchecked secrets that the conversation used"`
	Addresses []string          `json:"addresses,omitempty" doc:"Addresses of links and images in answers, which their texts may not show; at most 500"`
	More      int               `json:"more_addresses,omitempty" doc:"Number of further addresses"`
	// MessageImages and Omitted count images of the user's messages.
	MessageImages int  `json:"message_images" doc:"Images of the user's messages on the branch, whether included or not"`
	Omitted       int  `json:"omitted_images,omitempty" doc:"Images of messages that are not included because all images and files would exceed 50, or 16 MiB"`
	Images        int  `json:"images" doc:"Images in results of calls on the branch, whether included or not"`
	Links         bool `json:"links" doc:"Whether the hub permits shares for anyone with the link"`
	MaxDays       int  `json:"max_days" doc:"Maximum lifetime of a share"`
}

// ShareRequest describes a share to create.
type ShareRequest struct {
	ShareOptions          // as in the preview
	Digest       string   // of the preview that the user confirmed
	Audience     Audience // "" for Members
	Days         int      // lifetime; 0 for the default
}

// sharing returns the settings of shares. It fails with [ErrNoSharing] or
// [ErrSharingOff].
func (e *Engine) sharing() (Sharing, error) {
	if e.opts.Sharing == nil {
		return Sharing{}, ErrNoSharing
	}
	s := *e.opts.Sharing
	if s.MaxDays <= 0 {
		s.MaxDays = maxShareDays
	}
	if s.Off {
		return s, ErrSharingOff
	}
	return s, nil
}

// PreviewShare returns what a share of the current branch would contain now, without
// turns that have not ended. It stores only an audit record, which is needed because
// a user could find out secrets of a group with many previews; see [secretTracker].
func (e *Engine) PreviewShare(ctx context.Context, p account.Principal, id string, o ShareOptions) (*SharePreview, error) {
	preview, _, _, err := e.snapshotToShare(ctx, p, id, o)
	if err != nil {
		return nil, err
	}
	r := auditRecord(p.User, "session.share.preview", id, previewDetails{preview.Redacted.Stored})
	r.Namespace = store.UserNamespace(string(p.User))
	if err := e.db.Tx(ctx, func(tx *store.Tx) error { return tx.Audit.Append(ctx, r) }); err != nil {
		return nil, fmt.Errorf("preview share of conversation %q: %w", id, err)
	}
	return preview, nil
}

// previewDetails holds the audit record details of a preview.
type previewDetails struct {
	Stored int `json:"stored"` // occurrences of stored secrets
}

// shareTimeout limits the time to read a conversation and to search it for secrets.
const shareTimeout = 30 * time.Second

// snapshotToShare returns the preview of a share and its stored form. It fails with
// [ErrInvalid] if that takes too long.
func (e *Engine) snapshotToShare(ctx context.Context, p account.Principal, id string, o ShareOptions) (*SharePreview, []byte, *sharedFiles, error) {
	limited, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	preview, data, files, err := e.snapshotWithin(limited, p, id, o)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: searching the conversation for secrets takes longer than %v; share a shorter branch or fewer files", ErrInvalid, shareTimeout)
	}
	return preview, data, files, err
}

func (e *Engine) snapshotWithin(ctx context.Context, p account.Principal, id string, o ShareOptions) (*SharePreview, []byte, *sharedFiles, error) {
	s, err := e.authorize(ctx, p, account.SessionShare, id)
	if err != nil {
		return nil, nil, nil, err
	}
	sharing, err := e.sharing()
	if err != nil {
		return nil, nil, nil, err
	}
	st, err := readState(s)
	if err != nil {
		return nil, nil, nil, err
	}
	var secrets []StoredSecret
	if sharing.Secrets != nil {
		skills, err := e.loadedSkills(ctx, id)
		if err != nil {
			return nil, nil, nil, err
		}
		if secrets, err = sharing.Secrets(ctx, p, id, skills); err != nil {
			return nil, nil, nil, fmt.Errorf("find secrets to redact: %w", err)
		}
	}
	tracker := newSecretTracker(secrets)
	branch, err := e.readSharedBranch(ctx, id, st.ended(), o.Images, tracker.observe)
	if err != nil {
		return nil, nil, nil, err
	}
	out := &SharePreview{Content: sharedContent(s.Title, branch.steps, o.Images), Images: branch.images, Links: sharing.Links, MaxDays: sharing.MaxDays, Unchecked: tracker.unchecked()}
	out.Refused = checkUnchecked(out.Unchecked) != nil
	files := &sharedFiles{}
	if out.MessageImages, out.Omitted, err = e.addImages(ctx, id, out.Content, o.MessageImages, files); err != nil {
		return nil, nil, nil, err
	}
	if err := e.addFiles(ctx, id, out.Content, o.Files); err != nil {
		return nil, nil, nil, err
	}
	tracker.observeFiles(out.Content.Files)
	if out.Redacted, err = out.Content.redact(ctx, tracker.values(), branch.unshared); err != nil {
		return nil, nil, nil, err
	}
	if err := out.Content.finishFiles(files); err != nil {
		return nil, nil, nil, err
	}
	out.Addresses, out.More = out.Content.addresses()
	data, digest, err := out.Content.encode()
	out.Digest, out.Size = digest, int64(len(data))+files.size
	return out, data, files, err
}

// shareDetails holds the audit record details of a share.
type shareDetails struct {
	Share    string   `json:"share"` // ID, not the link, which is secret
	Audience Audience `json:"audience"`
	Days     int      `json:"days,omitempty"`
}

// shareRecord returns the audit record for an action on a share. Its owner may read
// it.
func shareRecord(by account.UserID, action string, s store.Share, days int) store.AuditRecord {
	r := auditRecord(by, action, s.Session, shareDetails{s.ID, Audience(s.Audience), days})
	r.Namespace = store.UserNamespace(s.Owner)
	return r
}

// CreateShare shares the content of a preview. It fails with [ErrPreviewChanged] if
// the conversation differs from the preview, and with [store.ErrTooMany] or a
// [*quota.ExceededError] if the user may not store another share.
func (e *Engine) CreateShare(ctx context.Context, p account.Principal, id string, r ShareRequest) (Share, error) {
	preview, data, files, err := e.snapshotToShare(ctx, p, id, r.ShareOptions)
	if err != nil {
		return Share{}, err
	}
	if r.Audience == "" {
		r.Audience = Members
	}
	if r.Days == 0 {
		r.Days = min(DefaultShareDays, preview.MaxDays)
	}
	switch {
	case r.Audience != Members && r.Audience != WithLink:
		return Share{}, fmt.Errorf("%w: unknown audience %.40q (want members or link)", ErrInvalid, string(r.Audience))
	case r.Audience == WithLink && !preview.Links:
		return Share{}, ErrNoLinks
	case r.Days < 1 || r.Days > preview.MaxDays:
		return Share{}, fmt.Errorf("%w: duration of a share must be 1 to %d days, got %d", ErrInvalid, preview.MaxDays, r.Days)
	case r.Digest != preview.Digest:
		return Share{}, ErrPreviewChanged
	}
	if err := checkUnchecked(preview.Unchecked); err != nil {
		return Share{}, err
	}
	var made store.Share
	err = e.db.Tx(ctx, func(tx *store.Tx) error {
		has, err := tx.Shares.Total(ctx, string(p.User))
		if err != nil {
			return err
		}
		if has.Count >= MaxShares {
			return fmt.Errorf("%w shared conversations (limit %d)", store.ErrTooMany, MaxShares)
		}
		if err := e.opts.Quotas.Check(ctx, &tx.Tables, store.UserNamespace(string(p.User)), quota.Amounts{Bytes: preview.Size}); err != nil {
			return err
		}
		made, err = tx.Shares.Create(ctx, store.Share{Link: rand.Text(), Session: id, Owner: string(p.User), Audience: string(r.Audience),
			Title: preview.Content.Title, Expires: time.Now().AddDate(0, 0, r.Days)}, data, files.files...)
		if err != nil {
			return err
		}
		return tx.Audit.Append(ctx, shareRecord(p.User, "session.share", made, r.Days))
	})
	if err != nil {
		return Share{}, fmt.Errorf("share conversation %q: %w", id, err)
	}
	return shareOf(made, true), nil
}

// Shared is a share with its content, for those who open it.
type Shared struct {
	Share   Share          `json:"share"`
	Content *SharedContent `json:"content"`
}

// OpenShare returns the share with the given link. It fails with
// [store.ErrNotFound] if the share was revoked or has expired, its conversation was
// deleted, or its owner is disabled. An anonymous principal may open only shares for
// anyone with the link, and does not learn which others exist.
func (e *Engine) OpenShare(ctx context.Context, p account.Principal, link string) (*Shared, error) {
	s, err := e.openShare(ctx, p, link)
	if err != nil {
		return nil, err
	}

	data, err := e.db.Shares.Snapshot(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	content, err := decodeContent(data)
	if err != nil {
		return nil, err
	}
	if err := e.recordView(ctx, p, s); err != nil {
		return nil, err
	}
	return &Shared{shareOf(s, p.User != "" && string(p.User) == s.Owner), content}, nil
}

// openShare returns the share with the given link if the principal may open it.
func (e *Engine) openShare(ctx context.Context, p account.Principal, link string) (store.Share, error) {
	if _, err := e.sharing(); errors.Is(err, ErrSharingOff) {
		if denied := account.Check(p, account.ShareRead, account.Resource{Shared: true}); denied != nil {
			return store.Share{}, denied
		}
		return store.Share{}, err
	}
	s, err := e.findShare(ctx, link)
	hidden := errors.Is(err, store.ErrNotFound)
	if err != nil && !hidden {
		return store.Share{}, err
	}
	sharing, _ := e.sharing()
	if hidden || !sharing.Links || Audience(s.Audience) != WithLink {
		if denied := account.Check(p, account.ShareRead, account.Resource{Owner: account.UserID(s.Owner), Shared: true}); denied != nil {
			return store.Share{}, denied
		}
	}
	if hidden {
		return store.Share{}, err
	}
	return s, nil
}

// findShare returns the share with a link, unless its owner is disabled.
func (e *Engine) findShare(ctx context.Context, link string) (store.Share, error) {
	notFound := fmt.Errorf("open shared conversation: %w", store.ErrNotFound)
	if _, err := e.sharing(); err != nil {
		return store.Share{}, notFound
	}
	s, err := e.db.Shares.ByLink(ctx, link)
	if err != nil {
		return store.Share{}, err
	}
	owner, err := e.db.Users.Get(ctx, s.Owner)
	if err == nil && owner.Disabled {
		err = notFound
	}
	if err != nil {
		return store.Share{}, err
	}
	return s, nil
}

// recordView records in the audit log that another user opened a share, once a day
// for each user.
func (e *Engine) recordView(ctx context.Context, p account.Principal, s store.Share) error {
	if string(p.User) == s.Owner {
		return nil
	}
	seen, err := e.db.Shares.Viewed(ctx, s.ID, string(p.User))
	if err != nil || seen {
		return err
	}
	return e.db.Tx(ctx, func(tx *store.Tx) error {
		first, err := tx.Shares.AddView(ctx, s.ID, string(p.User))
		if err != nil || !first {
			return err
		}
		return tx.Audit.Append(ctx, shareRecord(p.User, "session.share.view", s, 0))
	})
}

// Shares returns a page of a user's shares, newest first, and the cursor of the next
// page. If owner is "", it returns those of all users, for administrators, who see
// neither titles nor links. Without the scope to share conversations, it returns no
// links, because a token that only reads must not give access to the shares.
func (e *Engine) Shares(ctx context.Context, p account.Principal, owner account.UserID, page store.Page) ([]Share, string, error) {
	if err := account.Check(p, account.ShareList, account.OwnedBy(owner)); err != nil {
		return nil, "", err
	}
	found, next, err := e.db.Shares.List(ctx, string(owner), page)
	if err != nil {
		return nil, "", err
	}
	out := make([]Share, len(found))
	for i, s := range found {
		out[i] = shareOf(s, string(p.User) == s.Owner)
		if p.Scopes&account.ScopeChat == 0 {
			out[i].Link = ""
		}
	}
	return out, next, nil
}

// RevokeShare deletes a share. Nobody can open it from then on.
func (e *Engine) RevokeShare(ctx context.Context, p account.Principal, id string) error {
	if p.Anonymous() { // anonymous callers must not learn whether it exists
		return account.Check(p, account.ShareRevoke, account.OwnedBy(p.User))
	}
	s, err := e.db.Shares.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := account.Check(p, account.ShareRevoke, account.OwnedBy(account.UserID(s.Owner))); err != nil {
		if denied, ok := errors.AsType[*account.DeniedError](err); ok && denied.Hidden {
			err = fmt.Errorf("share %q: %w", id, store.ErrNotFound)
		}
		return err
	}
	return e.db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Shares.Delete(ctx, id); err != nil {
			return err
		}
		return tx.Audit.Append(ctx, shareRecord(p.User, "session.share.revoke", s, 0))
	})
}
