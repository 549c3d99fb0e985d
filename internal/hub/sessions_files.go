package hub

import (
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

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// SessionFilePath names a file of a conversation in a path.
type SessionFilePath struct {
	SessionPath
	Path string `path:"path" maxLength:"2048" doc:"The path of the file in the folder of the session; it may have slashes"`
}

func (h *Hub) sessionFiles(api huma.API) {
	add(h, api, operation("list-session-files", "GET", "/sessions/{session}/files", "The files of a conversation, by path"), h.listSessionFiles)
	read := operation("read-session-file", "GET", "/sessions/{session}/files/{path...}", "What is in a file of a conversation")
	write := operation("write-session-file", "PUT", "/sessions/{session}/files/{path...}", "Keep a file in a conversation, in place of the one of its path")
	remove := operation("delete-session-file", "DELETE", "/sessions/{session}/files/{path...}", "Delete a file of a conversation")
	read.Responses = streamed("200", "application/octet-stream")
	write.MaxBodyBytes, write.BodyReadTimeout, write.RequestBody = chat.MaxFile, operationTime, &huma.RequestBody{}
	add(h, api, read, h.readSessionFile)
	add(h, api, write, h.writeSessionFile)
	write.RequestBody.Required = false // a file may be empty
	add(h, api, remove, h.deleteSessionFile)
	deep(api, read.Path)
	export := operation("export-session", "GET", "/sessions/{session}/export", "A conversation as a file")
	export.Responses = streamed("200", "text/markdown", "application/jsonl")
	add(h, api, export, h.exportSession)
}

// streamed are the answers of an operation that are no JSON.
func streamed(status string, types ...string) map[string]*huma.Response {
	content := map[string]*huma.MediaType{}
	for _, t := range types {
		content[t] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return map[string]*huma.Response{status: {Description: http.StatusText(http.StatusOK), Content: content}}
}

// deep writes a path that the mux knows as one with any number of parts as the OpenAPI
// document knows paths.
func deep(api huma.API, path string) {
	paths := api.OpenAPI().Paths
	paths[strings.Replace(path, "...}", "}", 1)] = paths[path]
	delete(paths, path)
}

func (h *Hub) listSessionFiles(ctx context.Context, in *SessionPath) (*body[listed[chat.File]], error) {
	files, err := h.chat.Files(ctx, account.FromContext(ctx), in.Session)
	return page(files, "", err, func(f chat.File) chat.File { return f })
}

func (h *Hub) readSessionFile(ctx context.Context, in *SessionFilePath) (*huma.StreamResponse, error) {
	data, err := h.chat.ReadFile(ctx, account.FromContext(ctx), in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		attach(w, path.Base(in.Path), "application/octet-stream") // whatever a model wrote is no page of ours
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
	}}, nil
}

// attach has an answer be a file to keep.
func attach(w http.ResponseWriter, name, kind string) {
	w.Header().Set("Content-Type", kind)
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment"
	}
	w.Header().Set("Content-Disposition", disposition)
}

func (h *Hub) writeSessionFile(ctx context.Context, in *struct {
	SessionFilePath
	RawBody []byte `contentType:"application/octet-stream"`
}) (*nothing, error) {
	return nil, h.chat.WriteFile(ctx, account.FromContext(ctx), in.Session, in.Path, in.RawBody)
}

func (h *Hub) deleteSessionFile(ctx context.Context, in *SessionFilePath) (*nothing, error) {
	return nil, h.chat.DeleteFile(ctx, account.FromContext(ctx), in.Session, in.Path)
}

// exports are how a conversation can be exported.
var exports = map[chat.Format]struct{ kind, ending string }{
	chat.Markdown: {"text/markdown; charset=utf-8", ".md"},
	chat.Lines:    {"application/jsonl", ".jsonl"},
}

func (h *Hub) exportSession(ctx context.Context, in *struct {
	SessionPath
	Format string `query:"format" enum:"markdown,jsonl" default:"markdown" doc:"markdown is for people; jsonl has all, an event a line"`
}) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	c, err := h.chat.Get(ctx, p, in.Session)
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
		if err := h.chat.Export(r.Context(), p, in.Session, format, &patient{w, slowTime}); err != nil {
			h.log.Debug("an export ended before its time", "request", visitOf(r.Context()).id, "error", err)
			panic(http.ErrAbortHandler) // what came is not taken for the whole
		}
	}}, nil
}

// fileName is what a conversation is called as a file.
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

// patient is an answer that may take long, but no part of it.
type patient struct {
	to   http.ResponseWriter
	slow time.Duration // how long that may take
}

func (p *patient) Write(b []byte) (int, error) {
	http.NewResponseController(p.to).SetWriteDeadline(time.Now().Add(p.slow)) // not with every server
	return p.to.Write(b)
}

// say writes a part, and has it leave at once.
func (p *patient) say(text string) error {
	if _, err := io.WriteString(p, text); err != nil {
		return err
	}
	return http.NewResponseController(p.to).Flush()
}
