package scan

// sentenceTargets returns the rules that only [sentenceRules] apply.
func sentenceTargets() []Rule {
	return []Rule{
		{ID: "lure-archive", Severity: High, Target: Prose,
			Message: "asks for an archive from the network with a password, which keeps scanners from reading it, and to run what is in it",
			Advice:  "do not download it; a vendor needs no password for its own program"},
		{ID: "lure-protection", Severity: High, Target: Prose,
			Message: "asks to disable the protection of the system for a program to run",
			Advice:  "leave the protection on, and do not run the program"},
		{ID: "lure-paste", Severity: High, Target: Prose,
			Message: "asks to copy a command from a page on the network into a terminal",
			Advice:  "do not paste commands that the skill does not show"},
		{ID: "injection-remote", Severity: High, Target: Prose,
			Message: "tells the agent to follow instructions from the network as if the user had approved them",
			Advice:  "do not use the skill; its instructions can change at any time"},
		{ID: "encoded-text", Severity: High, Target: Prose,
			Message: "hides instructions in encoded text",
			Advice:  "decode it and read it before an agent does"},
		{ID: "lure-secret", Severity: High, Target: Prose,
			Message: "asks for the recovery phrase or the private key of a wallet",
			Advice:  "give them to nobody; whoever has them owns the wallet"},
		{ID: "lure-program", Severity: Medium, Target: Prose,
			Message: "requires a program from a host that is not well known",
			Advice:  "find out who publishes the program and what it does"},
	}
}

// sentenceRules lists the attacks in prose, as topics that occur together.
var sentenceRules = []sentenceRule{
	{rule: "lure-archive", at: passwords, close: []topic{archives | foreignFile}, needs: []topic{outside | foreignFile | pasteSite | downloads, downloads | runs, programs | archives}, window: 400},
	{rule: "lure-protection", at: protections, close: []topic{disables}, needs: []topic{runs | downloads, programs | downloads | outside | foreignFile}, window: 350},
	{rule: "lure-paste", at: terminals, close: []topic{pastes, commands | programs, outside | pasteSite}, window: 250},
	{rule: "lure-program", severity: High, at: foreignFile, needs: []topic{outside, downloads | runs, urges}, window: 400},
	{rule: "lure-program", at: foreignFile, needs: []topic{outside, downloads | runs}, window: 300},
	{rule: "lure-secret", at: seeds, close: []topic{asks}, needs: []topic{outside | sends}, window: 1200},
	{rule: "injection-remote", at: outside, close: []topic{obeys}, needs: []topic{hides | approves}, window: 400},
	{rule: "injection-forward", at: talks, close: []topic{sends}, needs: []topic{hides, outside | always}, window: 350},
	{rule: "injection-credentials", at: keyFiles, close: []topic{sends}, needs: []topic{hides}, window: 400},
	{rule: "injection-credentials", at: keyWords, close: []topic{sends}, needs: []topic{hides, outside}, window: 400},
	{rule: "injection-memory", at: agentFiles, close: []topic{sends | pastes}, needs: []topic{hides, requires | always | outside}, window: 450},
	{rule: "injection-image", at: outside, close: []topic{conceals | sends}, needs: []topic{hides, talks | keyFiles}, window: 500},
	{rule: "injection-override", at: ignores, close: []topic{limits}, needs: []topic{hides | settings | approves}, window: 160},
	{rule: "injection-concealed", at: conceals, needs: []topic{agents, hides}},
	{rule: "agent-settings", at: settings, close: []topic{hides | ignores | always}, needs: []topic{hides}, window: 300},
}
