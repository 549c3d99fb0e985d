package sessionapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// SessionFilePath identifies a file of a conversation.
type SessionFilePath struct {
	SessionPath
	Path string `path:"path" maxLength:"2048" doc:"Path in the directory of the session; may contain slashes"`
}

func (h *Handlers) sessionFiles() {
	api.Add(h.Server, api.Operation("list-session-files", "GET", "/sessions/{session}/files", "List the files of a conversation by path"), h.listSessionFiles)
	read := api.Operation("read-session-file", "GET", "/sessions/{session}/files/{path...}", "Read a file of a conversation")
	write := api.Operation("write-session-file", "PUT", "/sessions/{session}/files/{path...}", "Write a file of a conversation")
	remove := api.Operation("delete-session-file", "DELETE", "/sessions/{session}/files/{path...}", "Delete a file of a conversation and its earlier versions, on all branches")
	read.Responses = streamResponses("200", "application/octet-stream")
	write.MaxBodyBytes, write.BodyReadTimeout, write.RequestBody = chat.MaxFile, api.OperationTimeout, &huma.RequestBody{}
	api.Add(h.Server, read, h.readSessionFile)
	api.Add(h.Server, write, h.writeSessionFile)
	write.RequestBody.Required = false // files may be empty
	api.Add(h.Server, remove, h.deleteSessionFile)
	documentPath(h.Server, read.Path)
	image := api.Operation("read-session-image", "GET", "/sessions/{session}/images/{image}", "Read an image of a message, without its metadata")
	image.Responses = streamResponses("200", "image/png", "image/jpeg", "image/gif", "image/webp")
	api.Add(h.Server, image, h.readSessionImage)
	export := api.Operation("export-session", "GET", "/sessions/{session}/export", "Export a conversation as a file")
	export.Responses = streamResponses("200", "text/markdown", "application/jsonl")
	api.Add(h.Server, export, h.exportSession)
}

// streamResponses describes non-JSON responses for the OpenAPI document.
func streamResponses(status string, types ...string) map[string]*huma.Response {
	content := map[string]*huma.MediaType{}
	for _, t := range types {
		content[t] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return map[string]*huma.Response{status: {Description: http.StatusText(http.StatusOK), Content: content}}
}

// documentPath rewrites a wildcard path in the OpenAPI document from mux syntax
// to OpenAPI syntax.
func documentPath(s *api.Server, path string) {
	paths := s.OpenAPI().Paths
	paths[strings.Replace(path, "...}", "}", 1)] = paths[path]
	delete(paths, path)
}

func (h *Handlers) listSessionFiles(ctx context.Context, in *SessionPath) (*api.Body[api.ListBody[chat.File]], error) {
	files, err := h.Chat.Files(ctx, account.FromContext(ctx), in.Session)
	return api.ListOf(files, "", err)
}

func (h *Handlers) readSessionFile(ctx context.Context, in *SessionFilePath) (*huma.StreamResponse, error) {
	data, err := h.Chat.ReadFile(ctx, account.FromContext(ctx), in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		attach(w, path.Base(in.Path), "application/octet-stream") // never displayed as a page of the hub, whatever the model wrote
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
	}}, nil
}

func (h *Handlers) readSessionImage(ctx context.Context, in *struct {
	SessionPath
	Image string `path:"image" pattern:"^[0-9a-f]{64}$" doc:"The ref of the image"`
}) (*huma.StreamResponse, error) {
	p, tag := account.FromContext(ctx), `"`+in.Image+`"`
	setHeaders := func(w http.ResponseWriter) {
		w.Header().Set("Cache-Control", "private, no-cache") // each use checks that the user may see it
		w.Header().Set("ETag", tag)
	}
	if hasTag(api.RequestFrom(ctx).HTTP, tag) { // the content need not be read
		if err := h.Chat.CheckImage(ctx, p, in.Session, in.Image); err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			_, w := humago.Unwrap(ctx)
			setHeaders(w)
			w.WriteHeader(http.StatusNotModified)
		}}, nil
	}
	image, err := h.Chat.ReadImage(ctx, p, in.Session, in.Image)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		setHeaders(w)
		w.Header().Set("Content-Type", image.MIMEType)
		w.Header().Set("Content-Disposition", "inline")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(image.Data))
	}}, nil
}

// hasTag reports whether the client has the content with an ETag.
func hasTag(r *http.Request, tag string) bool {
	for have := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(have), "W/") == tag {
			return true
		}
	}
	return false
}

// attach sets headers that make a browser save the response as a file.
func attach(w http.ResponseWriter, name, kind string) {
	w.Header().Set("Content-Type", kind)
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment"
	}
	w.Header().Set("Content-Disposition", disposition)
}

func (h *Handlers) writeSessionFile(ctx context.Context, in *struct {
	SessionFilePath
	RawBody []byte `contentType:"application/octet-stream"`
}) (*api.NoBody, error) {
	return nil, h.Chat.WriteFile(ctx, account.FromContext(ctx), in.Session, in.Path, in.RawBody)
}

func (h *Handlers) deleteSessionFile(ctx context.Context, in *SessionFilePath) (*api.NoBody, error) {
	return nil, h.Chat.DeleteFile(ctx, account.FromContext(ctx), in.Session, in.Path)
}

// exports maps export formats to media types and file extensions.
var exports = map[chat.Format]struct{ kind, ending string }{
	chat.Markdown: {"text/markdown; charset=utf-8", ".md"},
	chat.JSONL:    {"application/jsonl", ".jsonl"},
}

func (h *Handlers) exportSession(ctx context.Context, in *struct {
	SessionPath
	Format string `query:"format" enum:"markdown,jsonl" default:"markdown" doc:"markdown for reading; jsonl with all events, one per line"`
}) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	c, err := h.Chat.Get(ctx, p, in.Session)
	if err != nil {
		return nil, err
	}
	format := chat.Format(in.Format)
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		attach(w, fileName(c)+exports[format].ending, exports[format].kind)
		if r.Method == http.MethodHead {
			return
		}
		if err := h.Chat.Export(r.Context(), p, in.Session, format, &deadlineWriter{w, auth.SlowClientTimeout}); err != nil {
			h.Log.Debug("export ended early", "request", api.RequestFrom(r.Context()).ID, "error", err)
			panic(http.ErrAbortHandler) // abort, so that the client does not accept a partial file
		}
	}}, nil
}

// fileName returns a file name for exporting a conversation.
func fileName(c chat.Conversation) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, c.Title)
	if name = strings.Trim(name, ". "); name == "" {
		return "conversation " + c.ID
	}
	return name
}

// deadlineWriter sets a deadline for each write instead of one for the whole
// response.
type deadlineWriter struct {
	to   http.ResponseWriter
	slow time.Duration // timeout of a write
}

func (p *deadlineWriter) Write(b []byte) (int, error) {
	http.NewResponseController(p.to).SetWriteDeadline(time.Now().Add(p.slow)) // not supported by every server
	return p.to.Write(b)
}

// writeText writes text and flushes it.
func (p *deadlineWriter) writeText(text string) error {
	if _, err := io.WriteString(p, text); err != nil {
		return err
	}
	return http.NewResponseController(p.to).Flush()
}
