package policy_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/policy"
)

func Example() {
	ctx := context.Background()
	grants := policy.NewMemoryStore() // policy.NewFileStore(dir) keeps them
	requested := policy.Bounds{Network: []string{"api.weather.example:443"}}

	request := policy.Request{
		Principal: policy.Principal{ID: "claude", Kind: policy.AgentPrincipal},
		Subject:   policy.Digest("sha256:" + strings.Repeat("a", 64)),
		Name:      "weather",
		Requested: requested.Permissions(),
		Enabled:   true,
	}
	d := policy.Decide(ctx, grants, request)
	fmt.Println(d.Allow, d.Reason, "->", d.Hint)

	_, err := grants.Put(ctx, policy.Grant{
		Principal:   request.Principal,
		Subject:     request.Subject,
		Name:        request.Name,
		Permissions: request.Requested,
		Scope:       policy.Always,
		By:          policy.Principal{ID: "ann", Kind: policy.UserPrincipal},
	})
	if err != nil {
		fmt.Println(err)
	}
	d = policy.Decide(ctx, grants, request)
	fmt.Println(d.Allow, d.Reason, d.Effective.Network)

	hub := policy.Bounds{Network: []string{"*"}, MemoryMB: 512, Seconds: 60}
	fmt.Printf("%+v\n", hub.Intersect(requested).Intersect(d.Effective.Bounds()))
	// Output:
	// false not approved -> approve it after a review
	// true approved by person ann [api.weather.example:443]
	// {Network:[api.weather.example:443] Secrets:[] MemoryMB:512 Seconds:60 Processes:0 DiskMB:0 MinTier:0 WorkspaceWrite:false}
}
