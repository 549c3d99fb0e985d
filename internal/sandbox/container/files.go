package container

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/bundle"
	"github.com/loadout-dev/loadout/sandbox"
)

// Bounds on what is collected: commands make the files.
const (
	maxCollected = 20_000
	maxDepth     = 64
)

// pack writes what a container is to have in its memory: the directories of the
// layout, writable trees, secrets.
func pack(w io.Writer, spec *sandbox.Spec) error {
	tw := tar.NewWriter(w)
	made := map[string]bool{"work": true}
	dir := func(p string) error {
		var up []string
		for ; p != "." && !made[p]; p = path.Dir(p) {
			made[p] = true
			up = append(up, p)
		}
		for _, d := range slices.Backward(up) {
			if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, d := range []string{sandbox.InDir, sandbox.OutDir} {
		if err := dir(d[1:]); err != nil {
			return err
		}
	}
	for i := range spec.Trees {
		t := &spec.Trees[i]
		for _, f := range t.Files {
			if !t.Writable() {
				break
			}
			name := t.Path[1:] + "/" + f.Path
			h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: f.Size, Mode: 0o644, ModTime: time.Unix(0, 0)}
			if f.Exec {
				h.Mode = 0o755
			}
			if err := errors.Join(dir(path.Dir(name)), tw.WriteHeader(h)); err != nil {
				return err
			}
			if err := bundle.Copy(tw, t, f); err != nil {
				if errors.Is(err, tar.ErrWriteTooLong) {
					err = &sandbox.ChangedError{Tree: t.Path, Path: f.Path}
				}
				return err
			}
		}
	}
	for _, s := range spec.Secrets {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: sandbox.SecretsDir[1:] + "/" + s.Name, Size: int64(len(s.Reveal())), Mode: 0o400, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := io.WriteString(tw, s.Reveal()); err != nil {
			return err
		}
	}
	return tw.Close()
}

// Collect hands over the files below the work directory, as tar in the container
// reads them. They are kept in a file of ours meanwhile, as tar has an order of
// its own.
func (s *box) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	spool, err := os.CreateTemp("", "loadout-files-")
	if err != nil {
		return fmt.Errorf("collect files: %w", err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	if err := s.spool(ctx, spool); err != nil {
		return err
	}
	found, err := index(spool)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(f.File, io.NewSectionReader(spool, f.at, f.Size)); err != nil {
			return err
		}
	}
	return nil
}

// spool writes a tar of the work directory.
func (s *box) spool(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := s.engine.command(ctx, "exec", "--user", user, s.name, "tar", "-c", "-f", "-", "-C", sandbox.WorkDir, "--exclude", "./in", ".")
	l := s.spec.Limits.WithDefaults()
	room := &limited{w, workSize(s.spec, l) + 2048*int64(l.Inodes) + 1<<20}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = room, &limited{&said, 4 << 10}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case room.left < 0:
		return errors.New("collect files: there are more than fit into the work directory")
	case err != nil && exitCode(err) != 1: // 1: some file changed meanwhile or could not be read
		return &callError{[]string{"collect files"}, lastLine(said.String()), err}
	}
	return nil
}

// limited writes the beginning of what is written to it.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	keep := b[:max(0, min(int64(len(b)), l.left))]
	l.left -= int64(len(b))
	_, err := l.w.Write(keep)
	return len(b), err
}

// entry is a file in a tar.
type entry struct {
	sandbox.File
	at int64
}

// index reads a tar of the work directory, and lists in order what is in it. Only
// regular files count, and only those at an honest path.
func index(r io.ReadSeeker) ([]entry, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var found []entry
	for tr := tar.NewReader(r); len(found) < maxCollected; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, fmt.Errorf("the tar of files cannot be read: %w", err)
		}
		name := strings.TrimPrefix(h.Name, "./")
		if h.Typeflag != tar.TypeReg || sparse(h) || !fs.ValidPath(name) || name == "." || name == "in" || strings.HasPrefix(name, "in/") || strings.Count(name, "/") > maxDepth {
			continue
		}
		at, err := r.Seek(0, io.SeekCurrent) // headers are read to their end and no further
		if err != nil {
			return nil, err
		}
		found = append(found, entry{sandbox.File{Path: name, Size: h.Size, Exec: h.Mode&0o111 != 0}, at})
	}
	slices.SortFunc(found, func(a, b entry) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return slices.CompactFunc(found, func(a, b entry) bool { return a.Path == b.Path }), nil
}

// sparse reports whether a file is in the tar in parts, which ours never are.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func report(b *Backend, e *engine, enforced map[string]string) *sandbox.Report {
	r := &sandbox.Report{Backend: b.Name(), Tier: b.Tier(), Version: e.kind + " " + e.version}
	for _, name := range slices.Sorted(maps.Keys(enforced)) {
		l := sandbox.Layer{Name: name, Enforced: enforced[name] != "", By: enforced[name]}
		switch {
		case l.Enforced:
		case name == "inodes" && e.kind != "docker":
			l.By = e.kind + " cannot bound the number of files"
		case name == "memory", name == "processes", name == "cores":
			l.By, l.Fix = "no such limit of a control group is in the container", "let "+e.kind+" have the control groups for memory, pids and cpu: see the warnings of "+e.kind+" info"
		default:
			l.By = e.kind + " was asked for it, but it is not to be seen in the container"
		}
		r.Layers = append(r.Layers, l)
	}
	return r
}
