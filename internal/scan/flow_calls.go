package scan

import "bytes"

// passArguments records the tainted values that a statement passes to functions.
func (f *flow) passArguments(statement []byte) {
	if f.b.language&shell != 0 {
		f.passShellArguments(statement)
		return
	}
	for _, m := range functionCall.FindAllSubmatchIndex(statement, 8) {
		g := f.lookUp(statement[m[2]:m[3]])
		if g == nil || len(g.parameters) == 0 {
			continue
		}
		for i, a := range splitArguments(statement[m[1]:]) {
			v := f.readValue(a)
			if !v.isTracked() {
				continue
			}
			name, _, named := bytes.Cut(a, []byte("="))
			for n, p := range g.parameters {
				if named && p == string(bytes.TrimSpace(name)) || n == min(i, len(g.parameters)-1) || n == i+1 && g.parameters[0] == "self" {
					known := g.arguments[p]
					known.merge(v)
					g.arguments[p] = known
				}
			}
		}
	}
}

// splitArguments splits the text after an opening parenthesis at its commas, up
// to the closing one.
func splitArguments(text []byte) [][]byte {
	var out [][]byte
	depth, start, quote := 0, 0, byte(0)
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote && text[i-1] != '\\' {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case (c == ')' || c == ']' || c == '}') && depth > 0:
			depth--
		case c == ')':
			return append(out, text[start:i])
		case c == ',' && depth == 0 && len(out) < maxParameters:
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return append(out, text[start:])
}

// callText returns the text of a call, from its name to the parenthesis that
// closes it, or the rest of the statement.
func callText(statement []byte, where []int) []byte {
	open := bytes.IndexByte(statement[where[0]:], '(')
	if open < 0 {
		return statement[where[0]:]
	}
	open += where[0] + 1
	end := open
	for _, a := range splitArguments(statement[open:]) {
		end += len(a) + 1
	}
	return statement[where[0]:min(end, len(statement))]
}

// shellArguments is the name under which the arguments of a function in shell
// are known.
const shellArguments = "@"

// enterShellFunction records the function that starts or ends in a statement in
// shell.
func (f *flow) enterShellFunction(statement []byte) {
	if bytes.HasPrefix(statement, []byte("}")) {
		f.function = nil
		return
	}
	if i := bytes.Index(statement, []byte("()")); i < 0 || i > 64 {
		return
	}
	if m := shellFunction.FindSubmatch(statement); m != nil {
		f.enter(string(m[1]), func() []string { return []string{shellArguments} })
	}
}

// passShellArguments records the tainted values that a statement passes to
// functions in shell.
func (f *flow) passShellArguments(statement []byte) {
	for _, m := range shellCall.FindAllSubmatchIndex(statement, 16) {
		g := f.lookUp(statement[m[2]:m[3]])
		if g == nil || g == f.function {
			continue
		}
		rest := statement[m[3]:]
		if v := f.readValue(rest[:lineLength(rest)]); v.isTracked() {
			known := g.arguments[shellArguments]
			known.merge(v)
			g.arguments[shellArguments] = known
		}
	}
}

// readValue returns the tainted value that a statement reads, either directly or
// from variables and functions.
func (f *flow) readValue(statement []byte) value {
	var v value
	for i := range originPatterns {
		if s := &originPatterns[i]; f.reads && s.languages&f.b.language != 0 && v.origin&s.origin == 0 && s.pattern.Match(statement) {
			v.origin |= s.origin
		}
	}
	if v.origin&storedCredential != 0 && publicKey.Match(statement) {
		v.origin &^= storedCredential
	}
	if f.reads {
		for _, m := range oneSecret.FindAllSubmatch(statement, 16) {
			v.merge(value{secrets: map[string]bool{string(m[1]): true}})
		}
	}
	id := identifier
	if f.b.language&shell != 0 {
		id = expansion
	}
	for _, m := range id.FindAllSubmatch(statement, maxIdentifiers) {
		name := firstOf(m[1:]...)
		if len(m) > 2 && len(m[2]) > 0 { // an argument of the function
			if f.function != nil {
				v.merge(f.function.arguments[shellArguments])
			}
			continue
		}
		if known, ok := f.variables[string(name)]; ok {
			v.merge(known)
		} else if g := f.lookUp(name); g != nil && g != f.function && f.b.language&shell == 0 {
			v.merge(g.returned)
		}
	}
	if f.b.language&shell != 0 {
		for _, m := range append(substitution.FindAllSubmatch(statement, 8), shellCall.FindAllSubmatch(statement, 8)...) {
			if g := f.lookUp(m[1]); g != nil && g != f.function {
				v.merge(g.returned)
			}
		}
	}
	return v
}

// checkSinks reports a statement that sends, collects or executes a tainted
// value.
func (f *flow) checkSinks(u span, v value) {
	statement, bare := f.b.code[u.start:u.end], f.b.bare[u.start:u.end]
	has := func(o origin) bool { return v.origin&o != 0 }
	if f.b.language&shell != 0 {
		if has(wholeEnvironment | storedCredential) {
			f.addFinding("exfil-flow", u, shellSendCommand.FindIndex(statement))
		}
		return
	}
	f.checkNetwork(u, statement, v)
	if has(openConnection) && has(runningShell) {
		f.addFinding("reverse-shell", u, []int{0, len(statement)})
	}
	if !has(fetchedData | decodedData) {
		return
	}
	where := executingCall.FindIndex(bare)
	if where == nil && has(codeRunner) {
		where = functionCall.FindIndex(bare)
	}
	if where != nil {
		switch from := f.readValue(bare[where[0]:]).origin; {
		case from&fetchedData != 0 && f.b.language == powershell:
			f.addFinding("fetch-run-powershell", u, where)
		case from&fetchedData != 0:
			f.addFinding("fetch-run-code", u, where)
		case from&decodedData != 0:
			f.addFinding("decode-run", u, where)
		}
	} else if where := unpicklingCall.FindIndex(bare); where != nil && f.readValue(bare[where[0]:]).origin&fetchedData != 0 {
		f.addFinding("fetch-run-code", u, where)
	}
}

// checkNetwork reports a statement that sends keys or credentials, or that
// collects several keys.
func (f *flow) checkNetwork(u span, statement []byte, v value) {
	if v.origin&(wholeEnvironment|storedCredential|encodedKey) != 0 || len(v.secrets) > 0 {
		if where := networkCall.FindIndex(statement); where != nil {
			sent := f.readValue(f.withoutHeaders(callText(statement, where)))
			foreign := isSentElsewhere(statement, sent.secrets)
			if sent.origin&(wholeEnvironment|storedCredential) != 0 || foreign ||
				v.origin&encodedKey != 0 && len(sent.secrets) > 0 && !isSentToOwners(statement, sent.secrets) {
				f.addFinding("exfil-flow", u, where)
				return
			}
		}
	}
	if len(v.secrets) >= 2 {
		if where := serializingCall.FindIndex(statement); where != nil && countServices(f.readValue(f.withoutHeaders(callText(statement, where))).secrets) >= 2 {
			f.addFinding("credentials-gathered", u, where)
		}
	}
}

// addFinding adds a finding for part of a statement.
func (f *flow) addFinding(rule string, u span, where []int) {
	if where == nil || f.s.isRuleFull(rule, f.t.name) {
		return
	}
	from := f.b.start + u.start + where[0]
	for from < f.b.start+u.end && bytes.IndexByte([]byte(" \t\n"), f.t.data[from]) >= 0 {
		from++
	}
	to := from + lineLength(f.t.data[from:f.b.start+u.end])
	r := byID()[rule]
	f.s.addFindingAs(rule, f.s.inContext(f.b.severity(r, f.t.data, u, where[0], where[1]), f.t, f.b, r, from), f.t.position(from, to))
}
