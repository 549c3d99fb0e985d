package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

// publishOutput is the JSON output of the publish command.
type publishOutput struct {
	Index  string             `json:"index"` // path of the index
	Skills []publishedArchive `json:"skills"`
	Signed bool               `json:"signed"` // whether the skills were signed by this command
}

// publishedArchive is the archive of a skill in the index.
type publishedArchive struct {
	Name   string `json:"name"`
	Path   string `json:"path"`   // of the archive
	Digest string `json:"digest"` // of the archive
	Bytes  int64  `json:"bytes"`
}

func (a *app) publishCommand() *cobra.Command {
	var site, key string
	cmd := &cobra.Command{
		Use:   "publish DIR -o SITE",
		Short: "Make an index of skills for a website",
		Long: `Pack all skills below DIR into the directory SITE, with an index that programs find at
/.well-known/agent-skills/index.json. Copy SITE to the root of any website; users then
install with: loadout add https://example.com

With --key, each skill is signed first, as by loadout sign: the signature is written next
to its SKILL.md. The same skills always produce the same files.`,
		Example: `  loadout publish skills -o public --key ~/publisher.key
  loadout add https://example.com --skill pdf`,
		Args: argCount(1, 1, "the DIR with skills"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.publishSkills(cmd.Context(), args[0], site, key)
		},
	}
	cmd.Flags().StringVarP(&site, "output", "o", "", "write the index and the archives below the directory `SITE`")
	cmd.Flags().StringVar(&key, "key", "", "sign the skills with the private key in `FILE`")
	return cmd
}

func (a *app) publishSkills(ctx context.Context, dir, site, keyFile string) error {
	if site == "" {
		return exit.Errorf(exit.Usage, "for example: loadout publish "+console.ShellQuote(dir)+" -o public", "no -o SITE given")
	}
	if abs, err := filepath.Abs(dir); err == nil && setup.IsInside(abs, site) {
		return exit.Errorf(exit.Usage, "write it elsewhere", "%s is inside of %s, so its files could become part of a skill", site, dir)
	}
	dirs, err := publishedDirs(ctx, dir)
	if err != nil {
		return err
	}
	if keyFile != "" {
		key, err := a.openKey(keyFile)
		if err != nil {
			return err
		}
		for _, d := range dirs {
			if _, _, err := signDir(d, key, 0); err != nil {
				return err
			}
		}
	}
	target := filepath.Join(site, filepath.FromSlash(remote.IndexDir))
	if err := os.MkdirAll(target, 0o755); err != nil {
		return writeError(target, err)
	}
	out := publishOutput{Index: filepath.Join(target, "index.json"), Skills: []publishedArchive{}, Signed: keyFile != ""}
	index := remote.SiteIndex{Schema: remote.IndexSchema, Skills: []remote.Indexed{}}
	done := a.ShowProgress("packing")
	for _, d := range dirs {
		p, listed, err := a.publishSkill(d, target)
		if err != nil {
			done()
			return err
		}
		out.Skills, index.Skills = append(out.Skills, p), append(index.Skills, listed)
	}
	done()
	// The index is last, so that it never lists an archive that is not there.
	data, err := plainjson.Indented(index)
	if err == nil {
		err = atomicfile.Write(out.Index, data, 0o644)
	}
	if err != nil {
		return writeError(out.Index, err)
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	rows := make([][]string, len(out.Skills))
	for i, s := range out.Skills {
		rows[i] = []string{s.Name, console.FormatSize(s.Bytes), s.Digest}
	}
	a.PrintTable("", rows)
	fmt.Fprintf(a.Stdout, "%s: %s\nCopy %s to the root of a website. Users install with: loadout add https://YOUR-SITE\n", plain(out.Index), console.Pluralize(len(out.Skills), "skill"), plain(site))
	return nil
}

// publishedDirs returns the directories of the skills below dir, in order. All must be
// valid for an index.
func publishedDirs(ctx context.Context, dir string) ([]string, error) {
	found, err := validatePath(ctx, dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	by := map[string]string{} // path by name
	for _, v := range found {
		switch {
		case skillcheck.IsArchive(v.Path):
			continue
		case !v.Loads:
			return nil, exit.Errorf(exit.Failure, "see what is wrong: loadout validate "+console.ShellQuote(v.Path), "the skill in %s does not load", v.Path)
		case !skillname.IsPortable(v.Name):
			return nil, exit.Errorf(exit.Failure, "name it "+skillname.Slug(v.Name), "%s: an index allows only names of lower-case letters, digits and single hyphens, not %q", v.Path, v.Name)
		case by[v.Name] != "":
			return nil, exit.Errorf(exit.Failure, "rename or move one of them", "two skills have the name %s: %s and %s", v.Name, by[v.Name], v.Path)
		}
		by[v.Name] = v.Path
		dirs = append(dirs, v.Path)
	}
	if len(dirs) == 0 {
		return nil, exit.Errorf(exit.NotFound, "give a directory with skills", "no skills below %s", dir)
	}
	return dirs, nil
}

// publishSkill packs the skill in a directory into target.
func (a *app) publishSkill(dir, target string) (publishedArchive, remote.Indexed, error) {
	b, err := skill.OpenDir(dir)
	if err != nil {
		code, hint := exit.FileHint(err, "the path")
		return publishedArchive{}, remote.Indexed{}, exit.Errorf(code, hint, "open the skill %s: %w", dir, fileerror.Cause(err))
	}
	defer b.Close()
	s, _, err := skill.Parse(b.FS, b.Folder)
	if err == nil && s == nil {
		err = errors.New("the skill does not load")
	}
	if err != nil {
		return publishedArchive{}, remote.Indexed{}, exit.Errorf(exit.Failure, "see what is wrong: loadout validate "+console.ShellQuote(dir), "publish %s: %w", dir, fileerror.Cause(err))
	}
	file := filepath.Join(target, s.Name+".zip")
	_, ds, err := writeArchive(file, b, s.Name)
	for _, d := range ds {
		a.Note("%s: %s", dir, d)
	}
	if err != nil {
		return publishedArchive{}, remote.Indexed{}, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return publishedArchive{}, remote.Indexed{}, writeError(file, err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	return publishedArchive{s.Name, file, digest, int64(len(data))},
		remote.Indexed{Name: s.Name, Type: "archive", Description: s.Description, URL: s.Name + ".zip", Digest: digest}, nil
}
