package migrate

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// Limits on the files of a system.
const (
	maxFileBytes  = 16 << 20  // bytes of one file
	maxTotalBytes = 256 << 20 // bytes of all files, unless the caller has another limit
	maxFiles      = 20_000    // files that are read
	maxDepth      = 32        // nested directories
	maxServers    = 500
	maxResources  = 500  // files with documents for a hub
	maxLost       = 1000 // further losses are only counted
)

// reader reads the files of a system into a plan.
type reader struct {
	ctx   context.Context
	files fs.FS
	plan  *Plan
	count int
	bytes int64

	maxBytes int64 // limit of bytes

	// exports are the conversations in responses, which may have several pages,
	// by the ID of the conversation, or by file if it has none. order has their
	// keys in the order of the files. titles are the titles of conversations by
	// ID.
	exports map[string]*exported
	order   []string
	titles  map[string]string

	eventBytes int64 // size of the files with one event per line
	imageBytes int   // size of the images of all conversations

	memory PastConversation // memory of ba-agent

	servers map[definitionKey]int // indexes in plan.Servers
	ignored string                // path of the last file with documents over the limit
}

// skippedDirs lists the names of directories whose files belong to other
// programs, or are examples and tests. The top directory is never skipped.
var skippedDirs = map[string]bool{"node_modules": true, "vendor": true, "test": true, "tests": true, "testdata": true, "__tests__": true, "locales": true, "i18n": true, "__MACOSX": true}

// walk reads all files with a known format. It skips the directories of skills,
// which are installed as a whole.
func (r *reader) walk() error {
	return fs.WalkDir(r.files, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		case err != nil && p == ".":
			return err
		case err != nil:
			r.plan.addLost(File, path.Base(p), p, "cannot be read: %v", fileerror.Cause(err))
			return fs.SkipDir
		case d.IsDir():
			if p != "." && (skippedDirs[d.Name()] || strings.Count(p, "/") >= maxDepth) || r.isSkill(p) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		if r.plan.System == Loadout && strings.EqualFold(path.Ext(p), ".jsonl") {
			return r.readEvents(p, d)
		}
		parse := r.parserOf(p)
		if parse == nil {
			return nil
		}
		data, ok := r.read(p, d)
		if !ok {
			return nil
		}
		parse(p, data)
		return nil
	})
}

// isSkill reports whether a directory has a SKILL.md.
func (r *reader) isSkill(dir string) bool {
	all, err := fs.ReadDir(r.files, dir)
	if err != nil {
		return false
	}
	for _, d := range all {
		if skillpath.IsSkillFile(d.Name()) {
			return true
		}
	}
	return false
}

// IsPage reports whether a problem is about a page of documentation that is
// named skill.md: its name is not written as SKILL.md, and it has no fields.
func IsPage(files fs.FS, p catalog.Problem) bool {
	all, err := fs.ReadDir(files, p.Path)
	return err == nil && p.Code == "frontmatter-missing" && !slices.ContainsFunc(all, func(d fs.DirEntry) bool { return d.Name() == skill.FileName })
}

// parserOf returns the function that parses files with this name, or nil if
// such files are not read.
func (r *reader) parserOf(p string) func(p string, data []byte) {
	name := strings.ToLower(path.Base(p))
	switch {
	case name == "package.json" || name == "package-lock.json" || name == "tsconfig.json":
		return nil
	case name == ".env" || strings.HasPrefix(name, ".env.") || strings.HasSuffix(name, ".env"):
		return r.parseEnv
	}
	switch path.Ext(name) {
	case ".json":
		return func(p string, data []byte) {
			r.parseConfig(p, data)
			r.parseExport(p, data)
		}
	case ".yaml", ".yml":
		return r.parseConfig
	case ".md":
		switch {
		case r.plan.System == Loadout:
			return r.parseMarkdown
		case r.plan.System == BAAgent && isMemory(p):
			return r.parseMemory
		}
	case ".py":
		if r.plan.System == LocalLLMProvider {
			return r.parsePython
		}
	}
	return nil
}

// read returns the content of a file. If the file cannot be read or exceeds a
// limit, read records that and returns false.
func (r *reader) read(p string, d fs.DirEntry) ([]byte, bool) {
	info, err := d.Info()
	if err != nil {
		r.plan.addLost(File, d.Name(), p, "cannot be read: %v", fileerror.Cause(err))
		return nil, false
	}
	switch {
	case info.Size() > maxFileBytes:
		r.plan.addLost(File, d.Name(), p, "too large (%d bytes, limit %d)", info.Size(), maxFileBytes)
		return nil, false
	case r.count == maxFiles || r.bytes+info.Size() > r.maxBytes:
		r.plan.addLost(File, d.Name(), p, "not read: more than %d files or %d bytes in all; migrate a subdirectory", maxFiles, r.maxBytes)
		return nil, false
	}
	f, err := r.files.Open(p)
	if err != nil {
		r.plan.addLost(File, d.Name(), p, "cannot be read: %v", fileerror.Cause(err))
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes))
	r.count++
	r.bytes += int64(len(data))
	if err != nil {
		r.plan.addLost(File, d.Name(), p, "cannot be read: %v", fileerror.Cause(err))
		return nil, false
	}
	return data, true
}
