package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"
)

// mark says up to where the vendor may keep a prompt in its cache: the tools and the
// instructions, which every conversation of a program shares; the end of this prompt;
// and the end of the one before, which is at the user's message before the last.
//
// The last mark alone would do for short steps: the vendor looks for what it has kept
// up to 20 blocks before a mark. A step with more calls and results than that is
// found by the mark where the step before ended.
func mark(p *sdk.MessageNewParams) {
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
