package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// openPublished downloads a skill from an index. It checks the digest before
// reading the content, and the name afterwards.
func (c *Client) openPublished(ctx context.Context, p publishedSkill) (*skill.Bundle, error) {
	var a *archive
	var err error
	switch {
	case p.files != nil:
		a, err = c.getFiles(ctx, p)
	case p.archive:
		a, err = c.getArchive(ctx, p)
	default:
		a, err = c.getSkillFile(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", p.name, err)
	}
	b, err := c.openNamed(ctx, a.tree, p.name)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return skill.NewBundle(b.FS, p.name, a.close), nil
}

// openNamed opens the skill at the root of a tree. The name in SKILL.md must
// match the index.
func (c *Client) openNamed(ctx context.Context, t *tree, name string) (*skill.Bundle, error) {
	refuse := func(code, message string) error {
		return fmt.Errorf("open skill %s: %w", name, &skill.RefusedError{What: "skill", Refusals: []skill.Refusal{{Code: code, Message: message}}})
	}
	if !t.isSkill(".") {
		return nil, refuse("no-skill-md", "no SKILL.md in the top folder")
	}
	b, err := c.openSkill(ctx, t, ".")
	if err != nil {
		return nil, err
	}
	s, _, err := skill.Parse(b.FS, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open skill %s: %w", name, err)
	case s == nil:
		return nil, refuse("name-mismatch", fmt.Sprintf("cannot check the name %s from the index: invalid SKILL.md", name))
	case s.Name != name:
		return nil, refuse("name-mismatch", fmt.Sprintf("name mismatch: %s in the index, %q in SKILL.md", name, truncate(s.Name, 80)))
	}
	return b, nil
}

func noClose() error { return nil }

// getSkillFile downloads a skill that consists only of a SKILL.md.
func (c *Client) getSkillFile(ctx context.Context, p publishedSkill) (*archive, error) {
	resp, err := c.fetch(ctx, p.url.String(), "file")
	if err != nil {
		return nil, err
	}
	src, err := readFile(resp.Body, cleanAddress(p.url), skillfile.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	if got := "sha256:" + skillfile.Hash(src); got != p.digest {
		return nil, &DigestError{Name: p.name, Want: p.digest, Got: got}
	}
	t, err := newTree([]entry{memoryEntry(skill.FileName, src)})
	return &archive{tree: t, close: noClose}, err
}

// getArchive downloads a skill that is published as an archive.
func (c *Client) getArchive(ctx context.Context, p publishedSkill) (*archive, error) {
	d, err := c.download(ctx, p.url.String())
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(d, 0, d.size)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); got != p.digest {
		return nil, errors.Join(&DigestError{Name: p.name, Want: p.digest, Got: got}, d.Close())
	}
	return c.openArchive(ctx, d, d.size, d.Close)
}

// getFiles downloads a skill's files individually. The index does not list
// their sizes, so getFiles limits the total size.
func (c *Client) getFiles(ctx context.Context, p publishedSkill) (*archive, error) {
	left := c.opts.Limits.Skill.UnpackedBytes
	if left == 0 {
		left = skillfile.PortableBytes
	}
	var entries []entry
	for i, f := range p.files {
		if isIgnored(f) {
			continue
		}
		u := *p.url
		u.Path += f
		src, err := c.getFile(ctx, &u, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(src))
		entries = append(entries, memoryEntry(f, src))
		c.progress(Progress{What: "downloading", Done: int64(i + 1), Total: int64(len(p.files))})
	}
	t, err := newTree(entries)
	return &archive{tree: t, close: noClose}, err
}

func (c *Client) getFile(ctx context.Context, u *url.URL, limit int64) ([]byte, error) {
	resp, err := c.fetch(ctx, u.String(), "file")
	if err != nil {
		return nil, err
	}
	return readFile(resp.Body, cleanAddress(u), limit)
}
