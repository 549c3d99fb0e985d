//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// repository is a Git repository of skills with two commits, and its server.
type repository struct {
	http, file    string // URLs
	skill         string // directory name of the skill that changes
	work, bare    string // working tree and bare repository
	before, after string // the two commits; one skill differs in after
	skills, files int
	bytes         int64

	git    string
	server *http.Server
}

// newRepository commits the first n skills of a directory and serves them until close is
// called.
func newRepository(dir, skills string, n int) (*repository, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "served")
	r := &repository{git: program, skills: n, work: filepath.Join(dir, "work"), bare: filepath.Join(root, "skills.git")}
	r.file = (&url.URL{Scheme: "file", Path: r.bare}).String()
	if err := r.copySkills(skills, n); err != nil {
		return nil, fmt.Errorf("copy skills: %w", err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := r.commit(); err != nil {
		return nil, err
	}
	return r, r.serve(root)
}

func (r *repository) copySkills(skills string, n int) error {
	entries, err := os.ReadDir(skills)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from := filepath.Join(skills, e.Name())
		if _, err := os.Stat(filepath.Join(from, "SKILL.md")); err != nil {
			continue
		}
		if n--; n < 0 {
			break
		}
		r.skill = e.Name()
		if err := os.CopyFS(filepath.Join(r.work, "skills", e.Name()), os.DirFS(from)); err != nil {
			return err
		}
	}
	if n > 0 {
		return fmt.Errorf("not enough skills in %s (%d missing)", skills, n)
	}
	return filepath.WalkDir(r.work, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			r.files, r.bytes = r.files+1, r.bytes+info.Size()
		}
		return err
	})
}

// commit writes both test commits in a single pack, as Git hosting services do.
func (r *repository) commit() error {
	if _, err := r.run("init", "--quiet", "--bare", "--template=", "--initial-branch=main"); err != nil {
		return err
	}
	commitAll := func() (string, error) {
		if _, err := r.run("--work-tree="+r.work, "add", "--all"); err != nil {
			return "", err
		}
		if _, err := r.run("--work-tree="+r.work, "commit", "--quiet", "--message=skills"); err != nil {
			return "", err
		}
		return r.run("rev-parse", "HEAD")
	}
	var err error
	if r.before, err = commitAll(); err != nil {
		return err
	}
	if err := appendTo(filepath.Join(r.work, "skills", r.skill, "SKILL.md"), "\nOne line more.\n"); err != nil {
		return err
	}
	if r.after, err = commitAll(); err != nil {
		return err
	}
	if _, err := r.run("repack", "-a", "-d", "--quiet"); err != nil {
		return err
	}
	return r.setMainBranch(r.before)
}

// setMainBranch makes the main branch point to a commit.
func (r *repository) setMainBranch(commit string) error {
	_, err := r.run("update-ref", "refs/heads/main", commit)
	return err
}

// run runs git in the repository and returns its output.
func (r *repository) run(args ...string) (string, error) {
	cmd := exec.Command(r.git, append([]string{"--git-dir=" + r.bare, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"}, args...)...)
	cmd.Env = gitEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(bytes.TrimSpace(out)), nil
}

// serve serves the repositories under root on a loopback address.
func (r *repository) serve(root string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.http = "http://" + l.Addr().String() + "/" + filepath.Base(r.bare)
	r.server = &http.Server{
		Handler: &cgi.Handler{
			Path: r.git, Args: []string{"http-backend"},
			Env: append(gitEnvironment(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
		},
		ReadHeaderTimeout: 10 * time.Second,
	}
	go r.server.Serve(l) // runs until close
	return nil
}

func (r *repository) close() error { return r.server.Close() }

// gitEnvironment returns environment variables that exclude the user's Git settings.
func gitEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
