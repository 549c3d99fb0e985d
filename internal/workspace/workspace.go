// Package workspace implements an MCP server for a folder. With it, an agent
// can read, write, edit and list files in the folder, and run commands through
// a function that the caller provides.
//
// The server does not request approval. The caller must decide whether a call
// is allowed before passing it on. Start reading at [New].
package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/figure"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Limits on a single call.
const (
	MaxRead  = 64 << 10 // bytes of a file per result
	MaxFile  = 8 << 20  // bytes of a file that is written or edited
	MaxList  = 1000     // files per listing
	maxDepth = 32
)

// CommandResult holds the exit status and the output of a command.
type CommandResult struct {
	ExitCode       int
	Stdout, Stderr string
	Notes          []string // additional information, such as that the command timed out
}

// Options configures a server.
type Options struct {
	// Run runs a command in the folder. If it is nil, there is no run_command
	// tool.
	Run func(ctx context.Context, args []string, timeout time.Duration) (*CommandResult, error)
	// ReadOutput reads a file that a script created. link is the link in the
	// script's result. It lets write_file copy such files into the folder. It
	// may be nil.
	ReadOutput func(link string) ([]byte, error)
	// Hint returns a hint about a path that does not exist in the folder, or
	// about a failed command, or "" if there is none. It may be nil.
	Hint func(text string) string
	// Project is the project's directory; skills are saved in its
	// .loadout/skills. If it is "", there is no save_skill tool. OnSave, if not
	// nil, is called with the name of a skill after it was saved.
	Project string
	OnSave  func(ctx context.Context, name string) error
	// Agree asks the user before a steering file is written; see package
	// steering. If it is nil, steering files are not written.
	Agree execution.Agree
	// Own is set for a folder in which no user works, such as one created for a
	// conversation. Then only files with protected names are not written; see
	// [execution.IsProtected].
	Own bool
}

// Name is the server name in permission rules.
const Name = "workspace"

// schemas caches the schemas of all servers, because each conversation has its
// own server.
var schemas = mcp.NewSchemaCache()

// New returns a server for the folder root. The caller must close root after
// use.
func New(root *os.Root, o *Options) *mcp.Server {
	if o == nil {
		o = &Options{}
	}
	f := &folder{root: root, opts: o}
	s := mcp.NewServer(&mcp.Implementation{Name: Name, Title: "Workspace", Version: "1"}, &mcp.ServerOptions{SchemaCache: schemas})
	reads, no, yes := &mcp.ToolAnnotations{ReadOnlyHint: true}, false, true
	writes := &mcp.ToolAnnotations{IdempotentHint: true, OpenWorldHint: &no}
	mcp.AddTool(s, &mcp.Tool{Name: toolname.ReadFile, Description: "Read a text file of the working folder.", Annotations: reads}, f.read)
	mcp.AddTool(s, &mcp.Tool{Name: toolname.ListFiles, Description: "List the files of the working folder.", Annotations: reads}, f.list)
	mcp.AddTool(s, &mcp.Tool{Name: toolname.WriteFile, Description: "Write a file of the working folder, in place of what it was.", Annotations: writes}, f.write)
	mcp.AddTool(s, &mcp.Tool{Name: toolname.EditFile, Description: "Replace a text in a file of the working folder.", Annotations: &mcp.ToolAnnotations{OpenWorldHint: &no}}, f.edit)
	if o.Project != "" {
		mcp.AddTool(s, &mcp.Tool{Name: toolname.SaveSkill, Description: "Save a skill: a SKILL.md with its description and instructions, and files beside it, in the project's folder of skills. It can be loaded then.",
			Annotations: &mcp.ToolAnnotations{OpenWorldHint: &no, DestructiveHint: &yes}}, f.save)
	}
	if o.Run != nil {
		mcp.AddTool(s, &mcp.Tool{Name: toolname.RunCommand, Description: "Run a shell command in the working folder: sh, Python and what else this machine has, in a sandbox without network. Loaded skills are read-only in /needs/NAME; Python can import the packages of approved ones.",
			Annotations: &mcp.ToolAnnotations{OpenWorldHint: &no, DestructiveHint: &yes}}, f.run)
	}
	return s
}

type folder struct {
	root *os.Root
	opts *Options
	mu   sync.Mutex // serializes changes
}

type readArgs struct {
	Path   string `json:"path" jsonschema:"inside the folder"`
	Offset int    `json:"offset,omitempty" jsonschema:"in bytes"`
}

func (f *folder) read(_ context.Context, _ *mcp.CallToolRequest, in readArgs) (*mcp.CallToolResult, any, error) {
	name, err := localPath(in.Path)
	if err != nil {
		return nil, nil, f.addHint(err, in.Path)
	}
	data, err := f.readPart(name, int64(in.Offset))
	if err != nil {
		return nil, nil, f.addHint(pathlessError(in.Path, err), in.Path)
	}
	more := len(data) > MaxRead
	data = data[:min(len(data), MaxRead)]
	for cut := 0; more && cut < utf8.UTFMax && !utf8.Valid(data); cut++ { // drop an incomplete character
		data = data[:len(data)-1]
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, nil, fmt.Errorf("not a text file: %s; inspect it with a command", in.Path)
	}
	text := string(data)
	if more {
		text += fmt.Sprintf("\n(There is more: read on with offset %d.)", in.Offset+len(data))
	}
	return textResult(text), nil, nil
}

// addHint adds a hint about the path or command in text to err.
func (f *folder) addHint(err error, text string) error {
	if hint := f.hint(text); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

func (f *folder) hint(text string) string {
	if f.opts.Hint == nil {
		return ""
	}
	return f.opts.Hint(text)
}

// readPart reads up to MaxRead+1 bytes of a regular file. The additional byte
// indicates that the file continues.
func (f *folder) readPart(name string, offset int64) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, max(offset, 0), MaxRead+1))
}

// open opens a regular file. It rejects other types of files, because opening a
// pipe could block.
func (f *folder) open(name string) (*os.File, error) {
	fi, err := f.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return f.root.Open(name)
}

type listArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"a folder inside it; none is all of it"`
	Pattern string `json:"pattern,omitempty" jsonschema:"of names, as *.csv"`
}

func (f *folder) list(ctx context.Context, _ *mcp.CallToolRequest, in listArgs) (*mcp.CallToolResult, any, error) {
	dir, err := localPath(in.Path)
	if err != nil {
		return nil, nil, err
	}
	if _, err := path.Match(in.Pattern, ""); err != nil {
		return nil, nil, fmt.Errorf("invalid pattern %q; use for example *.csv", in.Pattern)
	}
	var b strings.Builder
	count := 0
	err = fs.WalkDir(f.root.FS(), filepath.ToSlash(dir), func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && p == filepath.ToSlash(dir):
			return err
		case err != nil:
			return nil // skip unreadable entries
		case d.IsDir() && (d.Name() == ".git" || strings.Count(p, "/") >= maxDepth):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if ok, _ := path.Match(in.Pattern, d.Name()); in.Pattern != "" && !ok {
			return nil
		}
		if count++; count > MaxList {
			return fs.SkipAll
		}
		size := int64(0)
		if fi, err := d.Info(); err == nil {
			size = fi.Size()
		}
		fmt.Fprintf(&b, "%s (%d bytes)\n", p, size)
		return nil
	})
	if err != nil {
		return nil, nil, pathlessError(in.Path, err)
	}
	switch {
	case count > MaxList:
		fmt.Fprintf(&b, "There are more than %d: list a folder, or with a pattern.\n", MaxList)
	case count == 0:
		b.WriteString("There are no files.\n")
	}
	return textResult(b.String()), nil, nil
}

type writeArgs struct {
	Path    string  `json:"path" jsonschema:"inside the folder"`
	Content *string `json:"content,omitempty"`
	From    string  `json:"from,omitempty" jsonschema:"or the link of a file that a script left, as loadout-work://…"`
}

// content returns the content to write, which is given as text or as a link.
func (f *folder) content(in *writeArgs) ([]byte, error) {
	switch {
	case in.From == "" && in.Content == nil:
		return nil, errors.New("missing content: set content or from")
	case in.From == "":
		return []byte(*in.Content), nil
	case in.Content != nil && *in.Content != "":
		return nil, errors.New("content and from are both set; use only one")
	case f.opts.ReadOutput == nil:
		return nil, errors.New("scripts are disabled, so there is no file to copy")
	}
	data, err := f.opts.ReadOutput(in.From)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", in.From, err)
	}
	return data, nil
}

func (f *folder) write(ctx context.Context, _ *mcp.CallToolRequest, in writeArgs) (*mcp.CallToolResult, any, error) {
	name, err := localPath(in.Path)
	if err != nil {
		return nil, nil, err
	}
	data, err := f.content(&in)
	if err != nil {
		return nil, nil, err
	}
	if err := f.replaceFile(ctx, name, func() ([]byte, error) { return data, nil }); err != nil {
		return nil, nil, pathlessError(in.Path, err)
	}
	return textResult(fmt.Sprintf("Wrote %s, %d bytes.", in.Path, len(data))), nil, nil
}

// writeFile writes a file atomically, creating missing parent directories.
func (f *folder) writeFile(name string, data []byte) error {
	if len(data) > MaxFile {
		return fmt.Errorf("file too large (%d bytes, limit %d)", len(data), MaxFile)
	}
	dir, err := f.openDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	name = filepath.Base(name)
	mode := fs.FileMode(0o644)
	switch fi, err := dir.Lstat(name); {
	case err == nil && !fi.Mode().IsRegular():
		return errors.New("not a regular file")
	case err == nil && fi.Mode().Perm()&0o200 == 0:
		return errors.New("file is read-only; only the user can change that")
	case err == nil:
		mode = fi.Mode().Perm()
	}
	temp := ".loadout-" + rand.Text() + ".tmp"
	out, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err = errors.Join(err, out.Close()); err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}

// openDir opens a directory for writing, creating missing directories. It does
// not follow symlinks, because they may lead to files that programs execute.
func (f *folder) openDir(name string) (*os.Root, error) {
	at, err := f.root.OpenRoot(".")
	if err != nil || name == "." {
		return at, err
	}
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		next, err := openSubdir(at, part)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openSubdir opens a subdirectory, creating it if necessary.
func openSubdir(at *os.Root, name string) (*os.Root, error) {
	if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	before, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is a symlink or not a directory; use a path without symlinks", name)
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(before, now) { // replaced since the first check
		next.Close()
		return nil, fmt.Errorf("%s is a symlink or not a directory; use a path without symlinks", name)
	}
	return next, nil
}

type editArgs struct {
	Path string `json:"path" jsonschema:"inside the folder"`
	Old  string `json:"old" jsonschema:"the text as it is, once in the file"`
	New  string `json:"new"`
	All  bool   `json:"all,omitempty" jsonschema:"wherever it is"`
}

func (f *folder) edit(ctx context.Context, _ *mcp.CallToolRequest, in editArgs) (*mcp.CallToolResult, any, error) {
	name, err := localPath(in.Path)
	if err != nil {
		return nil, nil, err
	}
	count := 0
	err = f.replaceFile(ctx, name, func() ([]byte, error) {
		data, err := f.readFile(name)
		if err == nil {
			data, count, err = in.apply(data)
		}
		return data, err
	})
	if err != nil {
		return nil, nil, pathlessError(in.Path, err)
	}
	return textResult(fmt.Sprintf("Replaced it %d times in %s.", count, in.Path)), nil, nil
}

// apply returns the edited content and the number of replacements.
func (in *editArgs) apply(data []byte) ([]byte, int, error) {
	count := bytes.Count(data, []byte(in.Old))
	switch {
	case in.Old == "":
		return nil, 0, errors.New("missing old text; use write_file to write a whole file")
	case count == 0:
		return nil, 0, errors.New("text not found; read the file and copy the text exactly")
	case count > 1 && !in.All:
		return nil, 0, fmt.Errorf("text occurs %d times; include more context, or set all", count)
	}
	if size := len(data) + count*(len(in.New)-len(in.Old)); size > MaxFile {
		return nil, 0, fmt.Errorf("file would be too large (%d bytes, limit %d)", size, MaxFile)
	}
	return bytes.ReplaceAll(data, []byte(in.Old), []byte(in.New)), count, nil
}

type runArgs struct {
	Command string `json:"command" jsonschema:"for sh -c"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"after which it is ended; default 60"`
}

// maxSeconds is the maximum timeout of a command.
const maxSeconds = 600

func (f *folder) run(ctx context.Context, _ *mcp.CallToolRequest, in runArgs) (*mcp.CallToolResult, any, error) {
	if strings.TrimSpace(in.Command) == "" {
		return nil, nil, errors.New("missing command")
	}
	limit := 60
	if in.Seconds > 0 {
		limit = min(in.Seconds, maxSeconds)
	}
	before := figure.Scan(f.root.FS(), figureDirs...)
	ran, err := f.opts.Run(ctx, []string{"/bin/sh", "-c", in.Command}, time.Duration(limit)*time.Second)
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	b.WriteString(ran.Stdout)
	if ran.Stderr != "" {
		b.WriteString("\n[standard error]\n" + ran.Stderr)
	}
	for _, note := range ran.Notes { // they may contain names of skills
		b.WriteString("\n[" + untrusted.New(note).ForModel() + "]")
	}
	fmt.Fprintf(&b, "\n[exit code %d]", ran.ExitCode)
	if hint := f.hint(in.Command); ran.ExitCode != 0 && hint != "" {
		b.WriteString("\n[" + hint + "]")
	}
	res := textResult(strings.TrimLeft(b.String(), "\n"))
	res.IsError = ran.ExitCode != 0
	res.Content = append(res.Content, before.New(f.root.FS(), figureDirs...)...)
	return res, nil, nil
}

// figureDirs lists the directories whose new images are part of the result of a
// command.
var figureDirs = []string{".", "out"}

// localPath returns a path relative to the folder, with the operating system's
// separators.
func localPath(name string) (string, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "/workspace/"), "./")
	if name == "" || name == "/workspace" {
		return ".", nil
	}
	p := filepath.FromSlash(path.Clean(name))
	if !filepath.IsLocal(p) {
		return "", fmt.Errorf("path %q is not inside the folder; use a relative path", name)
	}
	return p, nil
}

// pathlessError returns err without host paths.
func pathlessError(name string, err error) error {
	if name == "" {
		name = "the folder"
	}
	return fmt.Errorf("%s: %w", name, fileerror.Cause(err))
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
