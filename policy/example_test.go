package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/policy"
)

func Example() {
	ctx := context.Background()
	grants := policy.NewMemoryStore() // or policy.NewFileStore(dir)
	requested := policy.Bounds{Network: []string{"api.weather.example:443"}}
	claude := policy.Principal{ID: "claude", Kind: policy.AgentPrincipal}
	weather := policy.Digest("sha256:" + strings.Repeat("a", 64))

	_, err := grants.Find(ctx, claude, weather, "")
	fmt.Println(errors.Is(err, policy.ErrNotGranted))

	_, err = grants.Put(ctx, policy.Grant{
		Principal:   claude,
		Subject:     weather,
		Name:        "weather",
		Permissions: requested.Permissions(),
		Scope:       policy.Always,
		By:          policy.Principal{ID: "ann", Kind: policy.UserPrincipal},
	})
	if err != nil {
		fmt.Println(err)
	}
	g, err := grants.Find(ctx, claude, weather, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("approved by", g.By)

	operator := policy.Bounds{Network: []string{"*"}, MemoryMB: 512, Seconds: 60}
	fmt.Printf("%+v\n", operator.Intersect(requested).Intersect(g.Permissions.Bounds()))

	rules, _ := policy.ParseRules([]string{"allow mcp.weather.*"})
	call := policy.ToolCall{Server: "weather", Tool: "forecast", Safety: policy.Low}
	fmt.Println(rules.Decide(call).Effect)
	// Output:
	// true
	// approved by person ann
	// {Network:[api.weather.example:443] Secrets:[] MemoryMB:512 Seconds:60 Processes:0 DiskMB:0 MinTier:0 WorkspaceWrite:false}
	// allow
}
