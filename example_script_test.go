package loadout_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/sandbox/auto"
)

// This example runs a script after the user approved it. The approval covers
// exactly the files that the request shows, for one run.
func ExampleApprover() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{
			"greet/SKILL.md": {Data: []byte("---\nname: greet\ndescription: Greets.\n---\n")},
			"greet/greet.sh": {Data: []byte("echo Good $1\n")},
		})},
		Scripts: &loadout.Scripts{Sandbox: auto.New(testSandbox())},
		Approve: func(_ context.Context, r *loadout.ApprovalRequest) (loadout.Approval, error) {
			fmt.Printf("Run %s of %s? (%d files, %s)\n", r.Script, r.Entry.Name, len(r.Manifest), r.Reason)
			return loadout.Approval{Approved: true}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Run(ctx, loadout.Run{Skill: "greet", Script: "greet.sh", Args: []string{"morning"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output:
	// Run greet.sh of greet? (2 files, not approved)
	// Good morning
}
