package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// checkRoots runs Gemini CLI with a second directory, which the client passes
// to the server as a root. It checks that the first request to the model lists
// a skill in that directory, and that the skill is loaded.
func checkRoots(loadout, modules string) error {
	dir, err := os.MkdirTemp("", "clients-roots-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const name, text = "tide-tables", "Add one hour in summer."
	model := newFakeModel("load_skill", `{"name":"`+name+`"}`)
	defer model.Close()
	one := &run{home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project"), model: model.URL, server: "loadout", command: []string{loadout, "mcp"}, allowed: true}
	library := filepath.Join(dir, "library")
	head := "ref: refs/heads/main\n"
	// The client reads .agents and .gemini itself, but not .claude.
	skill := filepath.Join(library, ".claude", "skills", name, "SKILL.md")
	if err := errors.Join(writeFile(filepath.Join(one.project, ".git", "HEAD"), head), writeFile(filepath.Join(library, ".git", "HEAD"), head),
		writeFile(skill, "---\nname: "+name+"\ndescription: Reads tide tables.\n---\n"+text+"\n")); err != nil {
		return err
	}
	args, env, err := prepareGemini(one)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(modules, ".bin", "gemini"), append([]string{"--include-directories", library}, args...)...)
	cmd.Dir = one.project
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + one.home, "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8"}, env...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	bodies, _ := model.recorded()
	switch {
	case len(bodies) == 0 || !bytes.Contains(bodies[0], []byte(name+": ")):
		return fmt.Errorf("the first of %d requests does not list %s (%v): %s", len(bodies), name, err, out[max(0, len(out)-2000):])
	case !bytes.Contains(bytes.Join(bodies[1:], nil), []byte(text)):
		return fmt.Errorf("%s was not loaded (%v): %s", name, err, out[max(0, len(out)-2000):])
	}
	fmt.Printf("roots: %s was loaded from a directory that Gemini CLI named\n", name)
	return nil
}
