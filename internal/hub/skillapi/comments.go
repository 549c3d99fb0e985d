package skillapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// CommentPath identifies a comment.
type CommentPath struct {
	api.SkillPath
	Comment string `path:"comment" maxLength:"64" doc:"ID of a comment"`
}

type newComment struct {
	Digest string `json:"digest,omitempty" maxLength:"100" doc:"Digest of the version that you saw; default any"`
	Thread string `json:"thread,omitempty" maxLength:"64" doc:"Thread to reply to; default a new one. A reply has the location of its thread"`
	Path   string `json:"path,omitempty" maxLength:"1024" doc:"Path of a file; default the whole version"`
	Line   int64  `json:"line,omitempty" minimum:"0" maximum:"1048576" doc:"Line of the file, from 1; default the whole file"`
	Base   int64  `json:"base,omitempty" minimum:"0" doc:"Number of the version that has the line, for lines that the version no longer has; default the version itself"`
	Text   string `json:"text" minLength:"1" maxLength:"4000" doc:"Markdown"`
}

type commentChange struct {
	Text string `json:"text" minLength:"1" maxLength:"4000" doc:"Markdown"`
}

type threadChange struct {
	Resolved bool `json:"resolved" doc:"false reopens it"`
}

// commentAdded is the result of adding a comment.
type commentAdded struct {
	Comment string                `json:"comment" doc:"ID of the new comment"`
	Thread  library.CommentThread `json:"thread"`
}

func (h *Handlers) commentsAPI() {
	api.Add(h.Server, api.Operation("list-comments", "GET", "/skills/{skill}/versions/{version}/comments", "List the comments on a version, and the open threads of earlier versions"), h.listComments)
	api.Add(h.Server, api.WithCreated(api.Operation("add-comment", "POST", "/skills/{skill}/versions/{version}/comments", "Comment on a line, a file or a version, or reply to a comment")), h.addComment)
	api.Add(h.Server, api.Operation("change-comment", "PATCH", "/skills/{skill}/comments/{comment}", "Change the text of your comment"), h.changeComment)
	api.Add(h.Server, api.Operation("delete-comment", "DELETE", "/skills/{skill}/comments/{comment}", "Delete your comment, or as a reviewer any comment. Replies to it remain"), h.deleteComment)
	api.Add(h.Server, api.Operation("resolve-comment", "PUT", "/skills/{skill}/comments/{comment}/resolved", "Resolve or reopen the thread that a comment started"), h.resolveComment)
}

func (h *Handlers) listComments(ctx context.Context, in *VersionPath) (*api.Body[api.ListBody[library.CommentThread]], error) {
	threads, err := h.Library.Comments(ctx, account.FromContext(ctx), in.Skill, in.number())
	return api.ListOf(threads, "", err)
}

func (h *Handlers) addComment(ctx context.Context, in *struct {
	VersionPath
	Body newComment
}) (*api.Body[commentAdded], error) {
	b := in.Body
	thread, comment, err := h.Library.AddComment(ctx, account.FromContext(ctx), in.Skill, in.number(),
		library.NewComment{Digest: b.Digest, Thread: b.Thread, Path: b.Path, Base: b.Base, Line: b.Line, Text: b.Text})
	if err != nil {
		return nil, err
	}
	return api.BodyOf(commentAdded{comment, *thread}, nil)
}

func (h *Handlers) changeComment(ctx context.Context, in *struct {
	CommentPath
	Body commentChange
}) (*api.Body[library.CommentThread], error) {
	return threadBody(h.Library.EditComment(ctx, account.FromContext(ctx), in.Skill, in.Comment, in.Body.Text))
}

func (h *Handlers) deleteComment(ctx context.Context, in *CommentPath) (*api.NoBody, error) {
	return nil, h.Library.DeleteComment(ctx, account.FromContext(ctx), in.Skill, in.Comment)
}

func (h *Handlers) resolveComment(ctx context.Context, in *struct {
	CommentPath
	Body threadChange
}) (*api.Body[library.CommentThread], error) {
	return threadBody(h.Library.ResolveThread(ctx, account.FromContext(ctx), in.Skill, in.Comment, in.Body.Resolved))
}

func threadBody(t *library.CommentThread, err error) (*api.Body[library.CommentThread], error) {
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*t, nil)
}
