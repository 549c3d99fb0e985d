package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"
)

// setBreakpoints sets up to three cache breakpoints: after the tools and
// instructions, which all conversations of a program share; at the end of this
// prompt; and at the end of the previous prompt, which is the second-to-last
// user message.
//
// For short steps, the last breakpoint would be enough, because the vendor
// searches its cache up to 20 blocks before a breakpoint. If a step has more
// calls and results, the breakpoint at the end of the previous prompt is
// needed.
func setBreakpoints(p *sdk.MessageNewParams) {
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = sdk.NewCacheControlEphemeralParam()
	} else if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	marks := 0
	for i := len(p.Messages) - 1; i >= 0 && marks < 2; i-- {
		if msg := p.Messages[i]; msg.Role == sdk.MessageParamRoleUser {
			*msg.Content[len(msg.Content)-1].GetCacheControl() = sdk.NewCacheControlEphemeralParam()
			marks++
		}
	}
}
