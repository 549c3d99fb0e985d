package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tables of findings and refusals in docs/authors.md list exactly the codes of the
// program, with severities and rules.
func TestDiagnosticTables(t *testing.T) {
	found := &findings{severities: map[string][]string{}, rules: map[string][]string{}, refusals: map[string]bool{}}
	for _, dir := range []string{"../skill", "../catalog", "../cmd/loadout", "../internal/skillcheck", "../internal/skillpath", "../internal/serverskill"} {
		found.read(t, dir)
	}
	if len(found.severities) < 50 || len(found.refusals) < 20 {
		t.Fatalf("found only %d findings and %d refusals in the code: has the way they are made changed?", len(found.severities), len(found.refusals))
	}
	p := readPage(t, "docs/authors.md")
	rows := p.rows("code", "severity", "rule")
	for _, code := range slices.Sorted(maps.Keys(found.severities)) {
		row, ok := rows[code]
		if !ok {
			t.Errorf("docs/authors.md has no row for the finding %s (%s, rule %s)", code, strings.Join(found.severities[code], " or "), strings.Join(found.rules[code], " or "))
			continue
		}
		for _, s := range found.severities[code] {
			if !strings.Contains(row[1], s) {
				t.Errorf("docs/authors.md: %s can be of severity %s", code, s)
			}
		}
		for _, r := range found.rules[code] {
			if r != "0" && r != "?" && !slices.Contains(regexp.MustCompile(`\d+`).FindAllString(row[2], -1), r) {
				t.Errorf("docs/authors.md: %s breaks rule %s", code, r)
			}
		}
		if row[2] != "" && !slices.ContainsFunc(found.rules[code], func(r string) bool { return r != "0" }) {
			t.Errorf("docs/authors.md: %s breaks no rule", code)
		}
	}
	for code := range rows {
		if found.severities[code] == nil {
			t.Errorf("docs/authors.md: the code has no finding %s", code)
		}
	}
	refused := p.rows("code", "an entry, or the archive")
	for _, code := range slices.Sorted(maps.Keys(found.refusals)) {
		if refused[code] == nil {
			t.Errorf("docs/authors.md has no row for the refusal %s", code)
		}
	}
	for code := range refused {
		if !found.refusals[code] {
			t.Errorf("docs/authors.md: the code has no refusal %s", code)
		}
	}
}

// rows reads the tables whose first columns have these titles: the cells of a
// row by the names in its first one.
func (p *page) rows(titles ...string) map[string][]string {
	out := map[string][]string{}
	inside := false
	for _, line := range p.lines {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case len(cells) >= len(titles) && slices.Equal(cells[:len(titles)], titles):
			inside = true
		case inside && strings.HasPrefix(cells[0], "`"):
			for name := range strings.SplitSeq(cells[0], ",") {
				out[strings.Trim(name, " `")] = cells
			}
		}
	}
	return out
}

// findings are the diagnostics and refusals that code makes, read from its
// syntax: literals, and calls of the few functions that make them.
type findings struct {
	severities, rules map[string][]string
	refusals          map[string]bool
}

func (f *findings) add(code, severity, rule string) {
	if !slices.Contains(f.severities[code], severity) {
		f.severities[code] = append(f.severities[code], severity)
	}
	if !slices.Contains(f.rules[code], rule) {
		f.rules[code] = append(f.rules[code], rule)
	}
}

func (f *findings) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				r := reader{findings: f, t: t, dir: dir, fset: fset, consts: map[string]string{}}
				r.function(fn)
			}
		}
	}
}

// reader reads one function.
type reader struct {
	*findings
	t      *testing.T
	dir    string
	fset   *token.FileSet
	consts map[string]string
	base   ast.Expr // severity and rule of the diagnostic that is filled in
	rule   ast.Expr
}

func (r *reader) function(fn *ast.FuncDecl) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					if s, ok := text(n.Values[i]); ok {
						r.consts[name.Name] = s
					}
				}
			}
		case *ast.CompositeLit:
			r.literal(n)
		case *ast.CallExpr:
			r.call(n)
		case *ast.AssignStmt:
			r.assign(n)
		case *ast.ReturnStmt:
			if fn.Name.Name != "Check" || r.dir != "../internal/skillpath" {
				break
			}
			if code, ok := text(n.Results[0]); ok && code != "" {
				r.refuse(n.Results[0])
			}
		}
		return true
	})
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func (r *reader) literal(n *ast.CompositeLit) {
	elems := n.Elts
	if array, ok := n.Type.(*ast.ArrayType); ok && typeName(array.Elt) == "Refusal" {
		for _, e := range elems {
			if lit, ok := e.(*ast.CompositeLit); ok && lit.Type == nil && len(lit.Elts) == 3 {
				r.refuse(lit.Elts[1])
			}
		}
		return
	}
	keys := map[string]ast.Expr{}
	for _, e := range elems {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if k, ok := kv.Key.(*ast.Ident); ok {
				keys[k.Name] = kv.Value
			}
		}
	}
	switch kind := typeName(n.Type); {
	case kind == "Diagnostic" && len(keys) == 0 && len(elems) == 7:
		r.finding(elems[0], elems[6], elems[1])
	case kind == "Refusal" && keys["Code"] != nil:
		r.refuse(keys["Code"])
	case keys["Severity"] != nil && (kind == "Diagnostic" || kind == ""):
		r.base, r.rule = keys["Severity"], keys["Rule"]
		if keys["Code"] != nil {
			r.finding(r.base, r.rule, keys["Code"])
		}
	}
}

func (r *reader) call(n *ast.CallExpr) {
	fun, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch args := n.Args; {
	case fun.Sel.Name == "add" && len(args) == 6:
		r.finding(args[0], args[1], args[2])
	case fun.Sel.Name == "report" && len(args) == 5:
		r.finding(ast.NewIdent("Info"), &ast.BasicLit{Kind: token.INT, Value: "6"}, args[2])
	case fun.Sel.Name == "fallbackName" && len(args) == 5:
		r.finding(ast.NewIdent("Warning"), args[2], args[3])
		r.finding(ast.NewIdent("Error"), args[2], args[3])
	case fun.Sel.Name == "refuse" && len(args) >= 3 && r.dir == "../skill" && !isName(args[1], "code"): // the code of skillpath.Check
		r.refuse(args[1])
	}
}

// assign reads d.Code = "…" and d.Rule = n.
func (r *reader) assign(n *ast.AssignStmt) {
	for i, lhs := range n.Lhs {
		sel, ok := lhs.(*ast.SelectorExpr)
		if !ok || len(n.Rhs) != len(n.Lhs) || r.base == nil {
			continue
		}
		switch sel.Sel.Name {
		case "Code":
			r.finding(r.base, r.rule, n.Rhs[i])
		case "Rule":
			r.rule = n.Rhs[i]
			for code := range r.consts { // the code that the literal had
				if name, ok := strings.CutPrefix(code, "code "); ok {
					r.add(name, severity(r.base), number(r.rule))
				}
			}
		}
	}
}

func (r *reader) finding(sev, rule, code ast.Expr) {
	for _, c := range r.codes(code) {
		r.consts["code "+c] = c
		r.add(c, severity(sev), number(rule))
	}
}

func (r *reader) refuse(code ast.Expr) {
	for _, c := range r.codes(code) {
		r.refusals[c] = true
	}
}

// codes returns the values of an expression, or none for a parameter, whose values are
// in the callers.
func (r *reader) codes(e ast.Expr) []string {
	if s, ok := text(e); ok {
		return []string{s}
	}
	switch e := e.(type) {
	case *ast.Ident:
		if s := r.consts[e.Name]; s != "" {
			return []string{s}
		}
		return nil
	case *ast.SelectorExpr:
		return nil // the code of another diagnostic
	case *ast.CallExpr:
		return nil // read from the saved index
	case *ast.BinaryExpr:
		if s, ok := text(e.X); ok && s == "encoding-" {
			return []string{"encoding-utf-16"} // the code of foreignEncoding
		}
	}
	r.t.Errorf("%s: cannot tell which code this is", r.fset.Position(e.Pos()))
	return nil
}

func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func severity(e ast.Expr) string { return strings.ToLower(typeName(e)) }

// number returns a literal number, "0" if there is none, or "?" if it is computed at run
// time.
func number(e ast.Expr) string {
	switch e := e.(type) {
	case nil:
		return "0"
	case *ast.BasicLit:
		return e.Value
	}
	return "?"
}
