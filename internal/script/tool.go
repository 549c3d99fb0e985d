package script

// Tool is a program of the host that installs packages. It is the caller's to
// change.
type Tool struct {
	// Argv starts it: its absolute path, after that of the interpreter where it
	// needs one.
	Argv []string
	// Prefixes are what of the host it needs, as in [Plan].
	Prefixes []string
}

// Tool looks for uv or npm as interpreters are looked for. It reports false
// where there is none that can be used, and which were found.
func (h Host) Tool(name string) (*Tool, []Unusable, bool) {
	f, tried, ok := h.find(recognised{interpreters: []string{name}}, func(found) string { return "" })
	if !ok {
		return nil, tried, false
	}
	return &Tool{Argv: append([]string{f.exe}, f.before...), Prefixes: f.prefixes}, nil, true
}
