package loadout_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/session"
)

// Zero options enable the skills in the default locations. To start with none,
// set the sources and the allowed skills.
func ExampleNew_closed() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skillTree)},
		Filter:  catalog.Filter{Allow: []string{"weather-*"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	_, err = rt.Fetch(ctx, "tides")
	fmt.Println(len(rt.Catalog().Snapshot().Skills()), err)
	// Output:
	// 0 skill "tides" is not available: not on the allowlist (skills.allow)
}

// Skills in a directory are read on demand. {baseDir} in their instructions is
// replaced with their directory.
func ExampleNew_directory() {
	dir, err := os.MkdirTemp("", "skills")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, skillTree); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewDir("mine", catalog.Project, dir, nil)},
		Watch:   true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	e, err := rt.Catalog().Snapshot().Get("tides")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Key(), e.Location() == filepath.Join(dir, "tides"))
	// Output: mine/tides true
}

func ExampleRuntime_ReadFile() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skillTree)}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	e, err := rt.Catalog().Snapshot().Get("tides")
	if err != nil {
		log.Fatal(err)
	}
	c, err := rt.ReadFile(ctx, e, "references/harbours.md", 0, 12)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q, go on at %d of %d\n", c.Text, c.Next, c.Size)
	_, err = rt.ReadFile(ctx, e, "harbours.md", 0, 0)
	fmt.Println(err)
	// Output:
	// "# Harbours\n\n", go on at 12 of 28
	// skill tides has no file harbours.md; did you mean references/harbours.md?
}

// This example runs a script in a sandbox. An agent can run it only if the user
// approved exactly these files.
func ExampleRuntime_Run() {
	ctx := context.Background()
	// Your program can use auto.New(nil); a test needs another executable for
	// the first process of a sandbox.
	box := auto.New(testSandbox())
	grants := policy.NewMemoryStore() // policy.NewFileStore stores them on disk
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
			"greet/SKILL.md": {Data: []byte("---\nname: greet\ndescription: Greets.\n---\n")},
			"greet/greet.sh": {Data: []byte("cat in/list.txt | while read name; do echo \"Good $1, $name\"; done > out/greetings.txt; wc -l < out/greetings.txt\n")},
		})},
		Scripts: &loadout.Scripts{Sandbox: box, Grants: grants, Bounds: policy.Bounds{Seconds: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	agent := policy.Principal{ID: "assistant", Kind: policy.AgentPrincipal}
	run := loadout.Run{Skill: "greet", Script: "greet.sh", Args: []string{"morning"}, Principal: agent,
		Inputs: []loadout.Input{{Name: "list.txt", Data: []byte("Ada\nGrace\n")}}}
	_, err = rt.Run(ctx, run)
	fmt.Println(err)

	request, err := rt.ReadApprovalRequest(ctx, "greet") // show it to the user, who approves
	if err != nil {
		log.Fatal(err)
	}
	_, err = grants.Put(ctx, policy.Grant{Principal: agent, By: policy.LocalUser(), Scope: policy.Always,
		Subject: request.Digest, Needs: request.Needs, Name: request.Entry.Name, Permissions: request.Requested.Permissions()})
	if err != nil {
		log.Fatal(err)
	}
	res, err := rt.Run(ctx, run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	for _, f := range res.Files {
		fmt.Println(f.Path, f.Size)
	}
	fmt.Println(res.Reason, res.ExitCode)
	// Output:
	// skill greet may not run scripts: not approved
	// 2
	// greetings.txt 38
	// ok 0
}

// A conversation in a file continues after the file is opened again.
func ExampleRuntime_NewSession() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skillTree)}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	for range 2 { // yesterday and today
		events, err := session.OpenFileLog(filepath.Join(dir, "1.jsonl"))
		if err != nil {
			log.Fatal(err)
		}
		s, err := rt.NewSession(ctx, &session.Options{Log: events})
		if err != nil {
			log.Fatal(err)
		}
		res, err := s.Load(ctx, "tides", nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.State)
		events.Close()
	}
	// Output:
	// loaded
	// already
}
