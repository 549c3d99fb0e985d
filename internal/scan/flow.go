package scan

import (
	"bytes"
	"context"
	"maps"
)

// Limits for tracking tainted values in the code of a skill.
const (
	maxFlowBytes   = 8 << 20
	maxStatements  = 20_000 // per block
	maxIdentifiers = 400    // per statement
	maxFunctions   = 1000   // per block
	maxParameters  = 16
	flowPasses     = 3 // a value passes at most this many functions that are used before their definition
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
		merged := make(map[string]bool, len(v.secrets)+len(o.secrets))
		maps.Copy(merged, v.secrets)
		maps.Copy(merged, o.secrets)
		v.secrets = merged
	}
}

func (v *value) isTracked() bool { return v.origin != 0 || len(v.secrets) > 0 }

// function is what is known about a function of the code.
type function struct {
	parameters []string
	arguments  map[string]value // by parameter
	returned   value
}

// program is code whose functions may call one another: the files of a skill in
// one language, or one block of a Markdown file.
type program struct {
	parts  []*flow
	shared map[string]*function // by name; the first definition counts
}

// flow tracks tainted values through the statements of a block from top to
// bottom, ignoring branches. It finds statements that send or collect keys, and
// statements that execute downloaded or decoded data. Sending a key in a
// request header counts as normal use.
type flow struct {
	s *scanner
	t *source
	b *block
	p *program

	report    bool // set in the last pass
	reads     bool // the current statement contains a word of a source
	sources   []int
	variables map[string]value
	functions map[string]*function // functions of the block
	function  *function            // function that contains the current statement, or nil
}

// retain keeps a block for followValues. A whole file may call functions of
// other files.
func (s *scanner) retain(t *source, b *block) {
	if s.retained += b.end - b.start; s.retained > maxFlowBytes {
		s.flowFull = true
		return
	}
	f := &flow{s: s, t: t, b: b}
	if b.whole {
		f.t = newSource(t.name, bytes.Clone(t.data)) // the buffer of a file is reused
	}
	if !b.whole || b.language&(python|javascript|shell) == 0 {
		s.programs = append(s.programs, &program{parts: []*flow{f}})
		return
	}
	if s.files == nil {
		s.files = map[language]*program{}
	}
	p := s.files[b.language]
	if p == nil {
		p = &program{}
		s.files[b.language] = p
		s.programs = append(s.programs, p)
	}
	p.parts = append(p.parts, f)
}

// followValues tracks the tainted values in the retained code. It makes several
// passes, because functions may be called before their definition. It ends early if ctx is
// done.
func (s *scanner) followValues(ctx context.Context) {
	for _, p := range s.programs {
		p.shared = map[string]*function{}
		for _, f := range p.parts {
			f.p, f.functions = p, map[string]*function{}
			f.b.lex(f.t)
			f.sources = findSources(f.b.code)
		}
		passes := 1
		if p.hasFunctions() {
			passes = flowPasses
		}
		for pass := range passes {
			for _, f := range p.parts {
				f.report = pass == passes-1
				f.follow(ctx)
			}
		}
		for _, f := range p.parts {
			s.work += f.t.work
		}
	}
}

// hasFunctions reports whether the code may define functions.
func (p *program) hasFunctions() bool {
	for _, f := range p.parts {
		for _, mark := range []string{"def ", "function", "=>", "()"} {
			if bytes.Contains(f.b.code, []byte(mark)) {
				return true
			}
		}
	}
	return false
}

// follow makes a pass over the statements of the block.
func (f *flow) follow(ctx context.Context) {
	f.variables, f.function = map[string]value{}, nil
	next := 0
	for i, u := range f.b.units[:min(len(f.b.units), maxStatements)] {
		if i%256 == 0 && ctx.Err() != nil {
			return
		}
		reads := false
		for next < len(f.sources) && f.sources[next] <= u.end {
			reads = reads || f.sources[next] > u.start
			next++
		}
		f.followStatement(u, reads)
	}
}

// followStatement tracks the values in a statement. reads reports whether the
// statement contains a word of a source.
func (f *flow) followStatement(u span, reads bool) {
	statement := f.b.code[u.start:u.end]
	f.t.work += len(statement)
	f.enterFunction(statement)
	if f.function != nil && f.b.language&shell != 0 && bytes.HasSuffix(bytes.TrimSpace(statement), []byte("}")) {
		defer func() { f.function = nil }() // the function ends here
	}
	f.reads = reads
	if !reads && !f.usesValues(statement) {
		return
	}
	part := f.withoutHeaders(statement)
	v := f.readValue(readPart(part))
	if len(v.secrets) > 0 && encodingCall.Match(statement) {
		v.origin |= encodedKey
	}
	if v.isTracked() {
		if f.report {
			f.checkSinks(u, v)
		}
		f.passArguments(part)
	}
	f.assign(statement, f.result(readPart(part), v))
}

// result returns the value of the expression of a statement that reads v: a
// request yields its answer, and a function of the file what it returns.
func (f *flow) result(expression []byte, v value) value {
	if f.b.language&(python|javascript) == 0 || !v.isTracked() {
		return v
	}
	if m := wholeCall.FindSubmatch(expression); m != nil {
		if g := f.functions[string(m[1])]; g != nil && g != f.function {
			return g.returned
		}
	}
	if networkCall.Match(expression) && !requestObject.Match(expression) {
		v.origin, v.secrets = v.origin&fetchedData, nil
	}
	return v
}

// usesValues reports whether a statement contains a variable or function with a
// tainted value.
func (f *flow) usesValues(statement []byte) bool {
	for i := 0; i < len(statement); {
		c := statement[i]
		if !isWordByte(c) && c != '$' {
			i++
			continue
		}
		start := i
		for i++; i < len(statement) && isWordByte(statement[i]); i++ {
		}
		if c == '$' && f.b.language&shell != 0 {
			if i == start+1 && i < len(statement) { // ${NAME}, $@ or the like
				if f.function != nil && bytes.IndexByte([]byte("@*"), statement[i]) >= 0 {
					return true
				}
				continue
			}
			start++
			if f.function != nil && start < len(statement) && statement[start] >= '1' && statement[start] <= '9' {
				return true
			}
		}
		if _, ok := f.variables[string(statement[start:i])]; ok {
			return true
		}
		if g := f.lookUp(statement[start:i]); g != nil && g.returned.isTracked() {
			return true
		}
	}
	return false
}

// lookUp returns the function with a name, or nil.
func (f *flow) lookUp(name []byte) *function {
	if g, ok := f.functions[string(name)]; ok {
		return g
	}
	return f.p.shared[string(name)]
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
	if f.b.language&shell != 0 {
		f.enterShellFunction(statement)
		return
	}
	if !bytes.Contains(statement, []byte("def ")) && !bytes.Contains(statement, []byte("function")) && !bytes.Contains(statement, []byte("=>")) {
		return
	}
	m := functionDefinition.FindSubmatch(statement)
	if m == nil {
		return
	}
	name, parameters := firstOf(m[1], m[3], m[5]), firstOf(m[2], m[4], m[6], m[7])
	f.enter(string(name), func() (out []string) {
		for _, p := range identifier.FindAllSubmatch(parameters, maxParameters) {
			out = append(out, string(p[1]))
		}
		return out
	})
}

// enter records a function that starts, and the values of its parameters.
func (f *flow) enter(name string, parameters func() []string) {
	g := f.functions[name]
	if g == nil {
		if len(f.functions) == maxFunctions {
			return
		}
		g = &function{parameters: parameters(), arguments: map[string]value{}}
		f.functions[name] = g
		if f.p.shared[name] == nil {
			f.p.shared[name] = g
		}
	}
	f.function = g
	for _, p := range g.parameters {
		if v, ok := g.arguments[p]; ok {
			f.variables[p] = v
		} else {
			delete(f.variables, p)
		}
	}
}

// assign records v as the value of the variables that a statement assigns.
func (f *flow) assign(statement []byte, v value) {
	set := func(name []byte, whole bool) {
		switch {
		case len(name) == 0:
		case v.isTracked():
			known := f.variables[string(name)]
			if whole {
				known = value{}
			}
			known.merge(v)
			f.variables[string(name)] = known
		case whole:
			delete(f.variables, string(name))
		}
	}
	if m := assignment.FindSubmatch(statement); m != nil {
		set(m[1], true)
		set(m[2], true)
		for _, names := range m[3:] {
			for _, n := range identifier.FindAll(names, maxParameters) {
				set(n, true)
			}
		}
	}
	if !v.isTracked() {
		return
	}
	if f.b.language&shell != 0 {
		for _, m := range writeTarget.FindAllSubmatch(statement, 4) {
			set(firstOf(m[1:]...), true)
		}
		if f.function != nil {
			f.function.returned.merge(v)
		}
		return
	}
	for _, m := range callbackParameter.FindAllSubmatch(statement, 4) { // callback parameters that receive the value
		set(m[1], true)
		set(m[2], true)
	}
	for _, m := range partAssignment.FindAllSubmatch(statement, 4) {
		set(firstOf(m[1], m[2]), false)
	}
	switch m := exportedValue.FindSubmatch(statement); {
	case m != nil:
		f.enter(string(m[1]), func() []string { return nil })
		f.function.returned.merge(v)
	case f.function != nil && returnsValue(statement):
		f.function.returned.merge(v)
	}
}

// firstOf returns the first group that matched, or nil.
func firstOf(groups ...[]byte) []byte {
	for _, g := range groups {
		if len(g) > 0 {
			return g
		}
	}
	return nil
}

// returnsValue reports whether a statement returns a value: it starts with
// return, or is a function whose body is an expression.
func returnsValue(statement []byte) bool {
	statement = bytes.TrimSpace(statement)
	return bytes.HasPrefix(statement, []byte("return")) || bytes.HasPrefix(statement, []byte("yield")) ||
		bytes.Contains(statement, []byte("=>")) && functionDefinition.Match(statement) && !bytes.HasSuffix(statement, []byte("{"))
}
