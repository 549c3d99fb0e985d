package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/skill"
)

// Limits on a saved skill.
const (
	MaxSkillFiles = 64
	MaxSkillBytes = 1 << 20
)

type saveArgs struct {
	Name         string     `json:"name" jsonschema:"lower-case letters, digits and hyphens"`
	Description  string     `json:"description" jsonschema:"what it does and when to use it"`
	Instructions string     `json:"instructions" jsonschema:"Markdown, without frontmatter"`
	Files        []saveFile `json:"files,omitempty" jsonschema:"as references/x.md or scripts/x.py"`
	Replace      bool       `json:"replace,omitempty" jsonschema:"in place of one that is there"`
}

type saveFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// save validates a skill and writes it to the project atomically.
func (f *folder) save(ctx context.Context, _ *mcp.CallToolRequest, in saveArgs) (*mcp.CallToolResult, any, error) {
	files, err := in.checkFiles()
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.writeSkill(in.Name, files, in.Replace); err != nil {
		return nil, nil, pathlessError("the skill "+in.Name, err)
	}
	text := fmt.Sprintf("Saved the skill %s with %d files in .loadout/skills. ", in.Name, len(files))
	if f.opts.OnSave != nil {
		if err := f.opts.OnSave(ctx, in.Name); err != nil {
			return textResult(text + "It can be loaded once the skills can be read again: " + err.Error()), nil, nil
		}
	}
	return textResult(text + "It can be loaded now."), nil, nil
}

// checkFiles returns the skill's files, keyed by path. Its error describes all
// problems.
func (in *saveArgs) checkFiles() (map[string]string, error) {
	var errs []error
	if strings.TrimSpace(in.Instructions) == "" || strings.TrimSpace(in.Description) == "" {
		errs = append(errs, errors.New("missing description or instructions"))
	}
	text := skill.Draft{Name: in.Name, Description: in.Description, Instructions: in.Instructions}.Render()
	_, found := skill.ParseBytes(text, skill.FileName, in.Name)
	if !found.Valid() {
		for _, d := range found {
			errs = append(errs, fmt.Errorf("line %d: %s (%s)", d.Line, d.Message, d.Fix))
		}
	}
	out := map[string]string{skill.FileName: string(text)}
	size := len(text)
	for _, file := range in.Files {
		p := path.Clean(file.Path)
		switch _, twice := out[p]; {
		case !filepath.IsLocal(filepath.FromSlash(p)) || strings.Contains(p, `\`) || strings.Count(p, "/") > maxDepth:
			errs = append(errs, fmt.Errorf("path %q is not inside the skill; use a relative path", file.Path))
		case twice || strings.EqualFold(p, skill.FileName):
			errs = append(errs, fmt.Errorf("duplicate file %s", p))
		case execution.IsProtected(p):
			errs = append(errs, fmt.Errorf("%s: protected, because programs run commands from this file", p))
		}
		out[p] = file.Content
		size += len(file.Content)
	}
	if len(in.Files) > MaxSkillFiles || size > MaxSkillBytes {
		errs = append(errs, fmt.Errorf("skill too large (%d files, %d bytes; limit %d files, %d bytes)", len(in.Files), size, MaxSkillFiles, MaxSkillBytes))
	}
	return out, errors.Join(errs...)
}

// writeSkill writes a skill to a temporary directory and then renames the
// directory. It does not follow symlinks.
func (f *folder) writeSkill(name string, files map[string]string, replace bool) error {
	project, err := os.OpenRoot(f.opts.Project)
	if err != nil {
		return err
	}
	defer project.Close()
	own, err := openSubdir(project, ".loadout")
	if err != nil {
		return err
	}
	defer own.Close()
	skills, err := openSubdir(own, "skills")
	if err != nil {
		return err
	}
	defer skills.Close()
	_, err = skills.Lstat(name)
	there := err == nil
	if there && !replace {
		return errors.New("skill already exists; set replace to overwrite it")
	}
	temp, old := ".new-"+rand.Text(), ".old-"+rand.Text()
	err = writeFiles(skills, temp, files)
	if err == nil && there {
		err = skills.Rename(name, old)
	}
	if err == nil {
		if err = skills.Rename(temp, name); err != nil && there {
			err = errors.Join(err, skills.Rename(old, name))
		}
	}
	return errors.Join(err, skills.RemoveAll(temp), skills.RemoveAll(old))
}

// writeFiles writes files to a new directory.
func writeFiles(in *os.Root, name string, files map[string]string) error {
	if err := in.Mkdir(name, 0o755); err != nil {
		return err
	}
	dir, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for p, content := range files {
		p = filepath.FromSlash(p)
		if err := dir.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := dir.WriteFile(p, []byte(content), mode); err != nil {
			return err
		}
	}
	return nil
}
