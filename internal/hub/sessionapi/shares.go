package sessionapi

import (
	"bytes"
	"context"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// newShare is a request to share a conversation.
type newShare struct {
	Files         []string `json:"files,omitempty" maxItems:"50" doc:"As in the preview"`
	MessageImages *bool    `json:"message_images,omitempty" doc:"As in the preview; default true"`
	Digest        string   `json:"digest" minLength:"1" maxLength:"128" doc:"Digest of the preview that the user confirmed"`
	Images        bool     `json:"images,omitempty" doc:"As in the preview"`
	Audience      string   `json:"audience,omitempty" enum:"members,link" doc:"members, the default: signed-in users; link: anyone with the link, if the hub permits that"`
	Days          int      `json:"days,omitempty" minimum:"1" maximum:"3650" doc:"Lifetime; default 30, at most max_days of the preview"`
}

// sharePath is the path parameter for a share.
type sharePath struct {
	Share string `path:"share" maxLength:"64" doc:"The id of a share"`
}

// linkPath is the path parameter for a share's link.
type linkPath struct {
	Link string `path:"link" maxLength:"64" doc:"The link of a share"`
}

func (h *Handlers) sharesAPI() {
	api.Add(h.Server, api.Operation("preview-share", "GET", "/sessions/{session}/share", "Show what a share of the current branch would contain, with secrets redacted"), h.previewShare)
	api.Add(h.Server, api.WithCreated(api.Operation("share-session", "POST", "/sessions/{session}/share", "Share a frozen snapshot of the current branch: the content of the preview")), h.shareSession)
	api.Add(h.Server, api.Operation("list-shares", "GET", "/shares", "List shared conversations, newest first: your own, or for administrators those of all users, without titles and links"), h.listShares)
	api.Add(h.Server, api.Operation("revoke-share", "DELETE", "/shares/{share}", "Stop sharing a conversation"), h.revokeShare)
	api.Add(h.Server, api.PublicOperation("get-shared", "GET", "/shared/{link}", "Open a shared conversation. Needs no sign-in if it is shared with anyone who has the link"), h.openShare)
	file := api.PublicOperation("get-shared-file", "GET", "/shared/{link}/files/{ref}", "Read an image or a file of a shared conversation. Needs no sign-in if it is shared with anyone who has the link")
	file.Responses = streamResponses("200", "application/octet-stream", "image/png", "image/jpeg", "image/gif", "image/webp")
	api.Add(h.Server, file, h.openShareFile)
}

func (h *Handlers) previewShare(ctx context.Context, in *struct {
	SessionPath
	Images        bool     `query:"images" doc:"Include images in results of calls"`
	MessageImages bool     `query:"message_images" default:"true" doc:"Include images of your messages, without their metadata"`
	Files         []string `query:"files,explode" maxItems:"50" doc:"Paths of files of the conversation to include; in text files, secrets are redacted"`
}) (*api.Body[*chat.SharePreview], error) {
	p := account.FromContext(ctx)
	if err := h.Shares.Allow(string(p.User)); err != nil {
		return nil, err
	}
	preview, err := h.Chat.PreviewShare(ctx, p, in.Session, chat.ShareOptions{Images: in.Images, MessageImages: in.MessageImages, Files: in.Files})
	return api.BodyOf(preview, err)
}

func (h *Handlers) shareSession(ctx context.Context, in *struct {
	SessionPath
	Body newShare
}) (*api.CreatedBody[chat.Share], error) {
	p := account.FromContext(ctx)
	if err := h.Shares.Allow(string(p.User)); err != nil {
		return nil, err
	}
	b := in.Body
	what := chat.ShareOptions{Images: b.Images, MessageImages: b.MessageImages == nil || *b.MessageImages, Files: b.Files}
	made, err := h.Chat.CreateShare(ctx, p, in.Session, chat.ShareRequest{Digest: b.Digest, ShareOptions: what, Audience: chat.Audience(b.Audience), Days: b.Days})
	return api.CreatedAt(made.Link, "shared", made, err)
}

func (h *Handlers) listShares(ctx context.Context, in *struct {
	api.Paging
	Owner string `query:"owner" maxLength:"64" default:"me" doc:"The id of a user, me, or all"`
}) (*api.Body[api.ListBody[chat.Share]], error) {
	p := account.FromContext(ctx)
	owner := account.UserID("")
	if in.Owner != "all" {
		owner = api.UserID(p, in.Owner)
	}
	found, next, err := h.Chat.Shares(ctx, p, owner, in.Page())
	return api.ListOf(found, next, err)
}

func (h *Handlers) revokeShare(ctx context.Context, in *sharePath) (*api.NoBody, error) {
	return nil, h.Chat.RevokeShare(ctx, account.FromContext(ctx), in.Share)
}

// sharedOutput is a share with headers that keep it out of search engines.
type sharedOutput struct {
	Robots string `header:"X-Robots-Tag"`
	Body   *chat.Shared
}

func (h *Handlers) openShare(ctx context.Context, in *linkPath) (*sharedOutput, error) {
	shared, err := h.Chat.OpenShare(ctx, account.FromContext(ctx), in.Link)
	if err != nil {
		return nil, err
	}
	return &sharedOutput{"noindex, nofollow", shared}, nil
}

func (h *Handlers) openShareFile(ctx context.Context, in *struct {
	Link string `path:"link" maxLength:"64" doc:"The link of a share"`
	Ref  string `path:"ref" maxLength:"64" doc:"The ref of the image or file"`
}) (*huma.StreamResponse, error) {
	file, err := h.Chat.OpenShareFile(ctx, account.FromContext(ctx), in.Link, in.Ref)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		if file.Type == "" {
			attach(w, path.Base(file.Name), "application/octet-stream") // never displayed as a page of the hub
		} else {
			w.Header().Set("Content-Type", file.Type)
			w.Header().Set("Content-Disposition", "inline")
		}
		w.Header().Set("X-Robots-Tag", "noindex, nofollow")
		w.Header().Set("Cache-Control", "private, no-cache") // a share may be revoked
		w.Header().Set("ETag", `"`+in.Ref+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.Data))
	}}, nil
}
