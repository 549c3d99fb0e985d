//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/scan"
)

// hashFiles reads and hashes every file in the skills.
func (r *repository) hashFiles() error {
	return filepath.WalkDir(r.work, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		sha256.Sum256(data)
		return err
	})
}

// scanSkills scans every skill in the repository.
func (r *repository) scanSkills() error {
	skills := os.DirFS(filepath.Join(r.work, "skills"))
	entries, err := fs.ReadDir(skills, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		sub, err := fs.Sub(skills, e.Name())
		if err != nil {
			return err
		}
		if _, err := scan.Skill(context.Background(), sub, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// syncCopy measures how long the disk takes to write a copy of the skills. It does not measure
// the copying itself.
func (b *bench) syncCopy() (measure.Cost, error) {
	dir := filepath.Join(b.dir, "copy")
	defer os.RemoveAll(dir)
	if err := syncDisk(b.dir); err != nil {
		return measure.Cost{}, err
	}
	if err := os.CopyFS(dir, os.DirFS(b.repo.work)); err != nil {
		return measure.Cost{}, err
	}
	return measure.Run(func() error { return syncDisk(b.dir) })
}
