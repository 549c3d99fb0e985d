package scan

import (
	"bytes"
	"maps"
)

// Limits for tracking tainted values in a block.
const (
	maxStatements  = 20_000
	maxIdentifiers = 400 // per statement
	maxFunctions   = 1000
	maxParameters  = 16
)

// origin is the set of sources from which a value may come.
type origin uint

const (
	wholeEnvironment origin = 1 << iota // all environment variables
	storedCredential                    // a file or store with credentials
	encodedKey                          // an encoded environment variable that holds a key
	fetchedData                         // downloaded data
	decodedData                         // data decoded from unreadable text
	openConnection                      // a network connection
	runningShell                        // a shell process
	codeRunner                          // an alias of a function that runs code
)

// value describes what a variable may contain.
type value struct {
	origin
	secrets map[string]bool // names of the environment variables in the value
}

func (v *value) merge(o value) {
	v.origin |= o.origin
	if len(o.secrets) > 0 && len(v.secrets) < 16 {
		if v.secrets == nil {
			v.secrets = map[string]bool{}
		}
		maps.Copy(v.secrets, o.secrets)
	}
}

func (v *value) isTracked() bool { return v.origin != 0 || len(v.secrets) > 0 }

// flow tracks tainted values through the statements of a block from top to
// bottom, ignoring branches. It finds statements that send or collect keys, and
// statements that execute downloaded or decoded data. Sending a key in a
// request header counts as normal use.
type flow struct {
	s *scanner
	t *source
	b *block

	report     bool // set in the second pass
	variables  map[string]value
	parameters map[string][]string // parameter names by function
	arguments  map[string]value    // argument values by parameter name
	returned   map[string]value    // return values by function
	function   string              // function that contains the current statement
}

// followValues tracks the tainted values in a block. It makes two passes,
// because functions may be called before their definition.
func (s *scanner) followValues(t *source, b *block) {
	f := &flow{s: s, t: t, b: b, parameters: map[string][]string{}, arguments: map[string]value{}, returned: map[string]value{}}
	for range 2 {
		f.variables, f.function = maps.Clone(f.returned), ""
		for _, u := range b.units[:min(len(b.units), maxStatements)] {
			f.followStatement(u)
		}
		f.report = true
	}
}

func (f *flow) followStatement(u span) {
	statement := f.b.code[u.start:u.end]
	f.t.work += len(statement)
	f.enterFunction(statement)
	if len(f.variables) == 0 && !mayReadSource(statement) {
		return
	}
	v := f.readValue(readPart(f.withoutHeaders(statement)))
	if len(v.secrets) > 0 && encodingCall.Match(statement) {
		v.origin |= encodedKey
	}
	if v.isTracked() {
		if f.report {
			f.checkSinks(u, v)
		}
		f.recordArguments(statement, v)
	}
	f.assign(statement, v)
}

// withoutHeaders removes the keys in request headers from a statement.
func (f *flow) withoutHeaders(statement []byte) []byte {
	if f.b.language&shell != 0 {
		return headerFlag.ReplaceAll(statement, []byte(" "))
	}
	return requestHeader.ReplaceAll(statement, []byte(" "))
}

// readPart returns the part of a statement that reads values, without the
// variables that it assigns.
func readPart(statement []byte) []byte {
	m := assignment.FindSubmatchIndex(statement)
	if len(m) < 4 || m[2] < 0 || bytes.HasSuffix(bytes.TrimRight(statement[:m[1]-1], "="), []byte("+")) {
		return statement
	}
	return statement[m[3]:]
}

// enterFunction records the function whose definition starts in a statement.
func (f *flow) enterFunction(statement []byte) {
	m := functionDefinition.FindSubmatch(statement)
	if m == nil {
		return
	}
	name := string(bytes.Join([][]byte{m[1], m[3]}, nil))
	if _, ok := f.parameters[name]; !ok && len(f.parameters) < maxFunctions {
		f.parameters[name] = nil
		for _, p := range identifier.FindAllSubmatch(bytes.Join([][]byte{m[2], m[4]}, []byte(" ")), maxParameters) {
			f.parameters[name] = append(f.parameters[name], string(p[1]))
		}
	}
	f.function = name
	for _, p := range f.parameters[name] {
		if v, ok := f.arguments[p]; ok {
			f.variables[p] = v
		} else {
			delete(f.variables, p)
		}
	}
}

// assign records v as the value of the variables that a statement assigns.
func (f *flow) assign(statement []byte, v value) {
	set := func(name []byte) {
		switch {
		case len(name) == 0:
		case v.isTracked():
			f.variables[string(name)] = v
		default:
			delete(f.variables, string(name))
		}
	}
	m := assignment.FindSubmatch(statement)
	for i := 1; i < len(m); i++ {
		set(m[i])
	}
	if !v.isTracked() {
		return
	}
	if f.b.language&shell != 0 {
		for _, m := range writeTarget.FindAllSubmatch(statement, 4) {
			set(m[1])
			set(m[2])
		}
		return
	}
	for _, m := range callbackParameter.FindAllSubmatch(statement, 4) { // callback parameters that receive the value
		set(m[1])
		set(m[2])
	}
	if m := appendAssignment.FindSubmatch(statement); m != nil {
		set(m[1])
	}
	if f.function != "" && returnStatement.Match(statement) {
		f.returned[f.function], f.variables[f.function] = v, v
	}
}

// recordArguments records v as an argument value of the functions that a
// statement calls.
func (f *flow) recordArguments(statement []byte, v value) {
	for _, m := range functionCall.FindAllSubmatch(statement, 8) {
		for _, p := range f.parameters[string(m[1])] {
			known := f.arguments[p]
			known.merge(v)
			f.arguments[p] = known
		}
	}
}

// readValue returns the tainted value that a statement reads, either directly or
// from variables.
func (f *flow) readValue(statement []byte) value {
	var v value
	for _, s := range originPatterns {
		if s.languages&f.b.language != 0 && s.pattern.Match(statement) {
			v.origin |= s.origin
		}
	}
	if v.origin&storedCredential != 0 && publicKey.Match(statement) {
		v.origin &^= storedCredential
	}
	for _, m := range oneSecret.FindAllSubmatch(statement, 16) {
		v.merge(value{secrets: map[string]bool{string(m[1]): true}})
	}
	if len(f.variables) == 0 {
		return v
	}
	id := identifier
	if f.b.language&shell != 0 {
		id = expansion
	}
	for _, m := range id.FindAllSubmatch(statement, maxIdentifiers) {
		if known, ok := f.variables[string(m[1])]; ok {
			v.merge(known)
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
	if where := networkCall.FindIndex(statement); where != nil && has(wholeEnvironment|storedCredential|encodedKey) {
		f.addFinding("exfil-flow", u, where)
	} else if len(v.secrets) >= 2 {
		f.addFinding("credentials-gathered", u, serializingCall.FindIndex(statement))
	}
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
	f.s.addFindingAs(rule, f.b.severity(byID()[rule], f.t.data, u, where[0], where[1]), f.t.position(from, to))
}
