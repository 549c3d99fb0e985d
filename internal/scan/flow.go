package scan

import (
	"bytes"
	"maps"
)

// Limits on following values in one block.
const (
	maxStatements  = 20_000
	maxIdentifiers = 400 // per statement
	maxFunctions   = 1000
	maxParameters  = 16
)

// origin is a set of origins of a variable's value.
type origin uint

const (
	environment origin = 1 << iota // the whole environment
	kept                           // a file or store with credentials
	encoded                        // a key of the environment, encoded
	fetched                        // downloaded data
	decoded                        // data decoded from an unreadable text
	connected                      // a connection
	started                        // a running shell
	runner                         // an alias of a function that runs code
)

// value is the known information about a variable's value.
type value struct {
	origin
	secrets map[string]bool // names of environment variables
}

func (v *value) from(o value) {
	v.origin |= o.origin
	if len(o.secrets) > 0 && len(v.secrets) < 16 {
		if v.secrets == nil {
			v.secrets = map[string]bool{}
		}
		maps.Copy(v.secrets, o.secrets)
	}
}

func (v *value) matters() bool { return v.origin != 0 || len(v.secrets) > 0 }

// flow follows values through the statements of a block from top to bottom,
// ignoring branches. It follows keys to statements that send or collect them,
// and downloaded or decoded data to statements that run it. A key in a request
// header is considered normal use.
type flow struct {
	s *scanner
	t *source
	b *block

	report     bool // set in the second pass
	variables  map[string]value
	parameters map[string][]string // by function
	given      map[string]value    // arguments by parameter name
	returned   map[string]value    // return values by function
	inside     string              // function that contains the statement
}

// flows follows values in a block. It makes two passes, because functions may
// be called before their definition.
func (s *scanner) flows(t *source, b *block) {
	f := &flow{s: s, t: t, b: b, parameters: map[string][]string{}, given: map[string]value{}, returned: map[string]value{}}
	for range 2 {
		f.variables, f.inside = maps.Clone(f.returned), ""
		for _, u := range b.units[:min(len(b.units), maxStatements)] {
			f.statement(u)
		}
		f.report = true
	}
}

func (f *flow) statement(u span) {
	statement := f.b.code[u.start:u.end]
	f.t.work += len(statement)
	f.function(statement)
	if len(f.variables) == 0 && !matters(statement) {
		return
	}
	v := f.valueOf(readPart(f.withoutHeaders(statement)))
	if len(v.secrets) > 0 && encodes().Match(statement) {
		v.origin |= encoded
	}
	if v.matters() {
		if f.report {
			f.sinks(u, v)
		}
		f.pass(statement, v)
	}
	f.assign(statement, v)
}

// withoutHeaders returns a statement without keys in request headers.
func (f *flow) withoutHeaders(statement []byte) []byte {
	if f.b.language&shell != 0 {
		return flags().ReplaceAll(statement, []byte(" "))
	}
	return presented().ReplaceAll(statement, []byte(" "))
}

// readPart returns the part of a statement that reads values, without variables
// that it assigns.
func readPart(statement []byte) []byte {
	m := assigns().FindSubmatchIndex(statement)
	if len(m) < 4 || m[2] < 0 || bytes.HasSuffix(bytes.TrimRight(statement[:m[1]-1], "="), []byte("+")) {
		return statement
	}
	return statement[m[3]:]
}

// function records the function that a statement starts.
func (f *flow) function(statement []byte) {
	m := defines().FindSubmatch(statement)
	if m == nil {
		return
	}
	name := string(bytes.Join([][]byte{m[1], m[3]}, nil))
	if _, ok := f.parameters[name]; !ok && len(f.parameters) < maxFunctions {
		f.parameters[name] = nil
		for _, p := range identifier().FindAllSubmatch(bytes.Join([][]byte{m[2], m[4]}, []byte(" ")), maxParameters) {
			f.parameters[name] = append(f.parameters[name], string(p[1]))
		}
	}
	f.inside = name
	for _, p := range f.parameters[name] {
		if v, ok := f.given[p]; ok {
			f.variables[p] = v
		} else {
			delete(f.variables, p)
		}
	}
}

// assign records the values of variables after a statement.
func (f *flow) assign(statement []byte, v value) {
	set := func(name []byte) {
		switch {
		case len(name) == 0:
		case v.matters():
			f.variables[string(name)] = v
		default:
			delete(f.variables, string(name))
		}
	}
	m := assigns().FindSubmatch(statement)
	for i := 1; i < len(m); i++ {
		set(m[i])
	}
	if !v.matters() {
		return
	}
	if f.b.language&shell != 0 {
		for _, m := range writesTo().FindAllSubmatch(statement, 4) {
			set(m[1])
			set(m[2])
		}
		return
	}
	for _, m := range callbacks().FindAllSubmatch(statement, 4) { // callbacks that use the value
		set(m[1])
		set(m[2])
	}
	if m := grows().FindSubmatch(statement); m != nil {
		set(m[1])
	}
	if f.inside != "" && returns().Match(statement) {
		f.returned[f.inside], f.variables[f.inside] = v, v
	}
}

// pass records the arguments of function calls.
func (f *flow) pass(statement []byte, v value) {
	for _, m := range calls().FindAllSubmatch(statement, 8) {
		for _, p := range f.parameters[string(m[1])] {
			known := f.given[p]
			known.from(v)
			f.given[p] = known
		}
	}
}

// valueOf returns the value that a statement reads directly or from variables.
func (f *flow) valueOf(statement []byte) value {
	var v value
	for _, s := range origins {
		if s.languages&f.b.language != 0 && s.pattern().Match(statement) {
			v.origin |= s.origin
		}
	}
	if v.origin&kept != 0 && publicKey().Match(statement) {
		v.origin &^= kept
	}
	for _, m := range oneSecret().FindAllSubmatch(statement, 16) {
		v.from(value{secrets: map[string]bool{string(m[1]): true}})
	}
	if len(f.variables) == 0 {
		return v
	}
	id := identifier()
	if f.b.language&shell != 0 {
		id = expansion()
	}
	for _, m := range id.FindAllSubmatch(statement, maxIdentifiers) {
		if known, ok := f.variables[string(m[1])]; ok {
			v.from(known)
		}
	}
	return v
}

// sinks reports a statement that sends, collects or runs a followed value.
func (f *flow) sinks(u span, v value) {
	statement, bare := f.b.code[u.start:u.end], f.b.bare[u.start:u.end]
	has := func(o origin) bool { return v.origin&o != 0 }
	if f.b.language&shell != 0 {
		if has(environment | kept) {
			f.found("exfil-flow", u, shellSends().FindIndex(statement))
		}
		return
	}
	if where := network().FindIndex(statement); where != nil && has(environment|kept|encoded) {
		f.found("exfil-flow", u, where)
	} else if len(v.secrets) >= 2 {
		f.found("credentials-gathered", u, serialises().FindIndex(statement))
	}
	if has(connected) && has(started) {
		f.found("reverse-shell", u, []int{0, len(statement)})
	}
	if !has(fetched | decoded) {
		return
	}
	where := executes().FindIndex(bare)
	if where == nil && has(runner) {
		where = calls().FindIndex(bare)
	}
	if where != nil {
		switch from := f.valueOf(bare[where[0]:]).origin; {
		case from&fetched != 0 && f.b.language == powershell:
			f.found("fetch-run-powershell", u, where)
		case from&fetched != 0:
			f.found("fetch-run-code", u, where)
		case from&decoded != 0:
			f.found("decode-run", u, where)
		}
	} else if where := unpickles().FindIndex(bare); where != nil && f.valueOf(bare[where[0]:]).origin&fetched != 0 {
		f.found("fetch-run-code", u, where)
	}
}

// found reports a part of a statement.
func (f *flow) found(rule string, u span, where []int) {
	if where == nil || f.s.enough(rule, f.t.name) {
		return
	}
	from := f.b.start + u.start + where[0]
	for from < f.b.start+u.end && bytes.IndexByte([]byte(" \t\n"), f.t.data[from]) >= 0 {
		from++
	}
	to := from + lineLength(f.t.data[from:f.b.start+u.end])
	f.s.addAs(rule, f.b.severity(byID()[rule], f.t.data, u, where[0], where[1]), f.t.position(from, to))
}
