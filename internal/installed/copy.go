package installed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// copySkill copies a skill's files to partPath and returns their hashes.
func (c *Change) copySkill(ctx context.Context, files fs.FS) (map[string]string, error) {
	manifest, err := listAccepted(files)
	if err != nil {
		return nil, err
	}
	if err := c.removeAll(partPath); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(manifest))
	made := map[string]bool{}
	room := int64(skillfile.MaxBytes)
	for _, f := range manifest {
		target := partPath + "/" + f.Path
		if dir := path.Dir(target); !made[dir] {
			if err := c.root.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			made[dir] = true
		}
		if err := c.checkFault("copy " + f.Path); err != nil {
			return nil, err
		}
		n, hash, err := copyFile(ctx, c.root, target, files, f.Path, room)
		if err != nil {
			return nil, err
		}
		room -= n
		out[f.Path] = hash
	}
	return out, nil
}

// listAccepted lists the files of a skill. It rejects files that cannot be
// stored on every system.
func listAccepted(files fs.FS) (skill.Manifest, error) {
	manifest, found, err := skill.List(files)
	if err != nil {
		return nil, err
	}
	refused := &skill.RefusedError{}
	refuse := func(path, code, message string) {
		if len(refused.Refusals) < MaxProblems {
			refused.Refusals = append(refused.Refusals, skill.Refusal{Entry: path, Code: code, Message: message})
		}
	}
	for _, d := range found { // files that cannot be copied
		refuse("", d.Code, printable.OneLine(d.Message))
	}
	seen := make(map[string]bool, len(manifest))
	head := false
	for _, f := range manifest {
		if why := pathError(f.Path); why != "" {
			refuse(f.Path, "path", why)
		}
		if seen[foldName(f.Path)] {
			refuse(f.Path, "collision", "name differs from another file only in letter case")
		}
		seen[foldName(f.Path)] = true
		head = head || skillpath.IsSkillFile(f.Path)
	}
	if !head {
		refuse("", "no-skill-md", "no "+skill.FileName)
	}
	if len(refused.Refusals) > 0 {
		return nil, refused
	}
	return manifest, nil
}

// copyFile copies a file of at most limit bytes to a new file. It returns the
// size and hash of the copy.
func copyFile(ctx context.Context, root *os.Root, target string, files fs.FS, p string, limit int64) (int64, string, error) {
	in, err := files.Open(p)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, "", err
	}
	if !info.Mode().IsRegular() {
		return 0, "", fmt.Errorf("not a regular file: %s", p)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	out, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, "", err
	}
	defer out.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), &contextReader{ctx, io.LimitReader(in, limit+1)})
	if err = errors.Join(err, out.Close()); err != nil {
		return 0, "", err
	}
	if n > limit {
		return 0, "", fmt.Errorf("%w (limit %d bytes)", skill.ErrTooLarge, int64(skillfile.MaxBytes))
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

// contextReader is a reader that fails once its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (b *contextReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.r.Read(p)
}

// stage moves the copied files to the staged path of the skill.
func (c *Change) stage(name string) error {
	if err := c.checkFault("stage " + name); err != nil {
		return err
	}
	if err := c.unstage(name); err != nil {
		return err
	}
	if err := c.root.MkdirAll(newPath, 0o755); err != nil {
		return err
	}
	return c.root.Rename(partPath, newPath+"/"+name)
}

// unstage removes a skill's staged files.
func (c *Change) unstage(name string) error { return c.removeAll(newPath + "/" + name) }

// removeAll removes a path, including directories without write permission.
func (c *Change) removeAll(p string) error {
	err := c.root.RemoveAll(p)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walk := fs.WalkDir(c.root.FS(), p, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() { // the callback runs before the directory is read
			c.root.Chmod(p, 0o700)
		}
		return nil
	})
	return errors.Join(walk, c.root.RemoveAll(p))
}
