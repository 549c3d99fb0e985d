package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is a source file with the changes that can be made to it.
type file struct {
	pkg     goPackage
	path    string // absolute
	text    []byte
	lines   int              // number of lines
	changes map[int][]change // by line
}

// change replaces a part of one line.
type change struct {
	line, from, to int // from and to are offsets in the file
	text           string
}

// mutation is a change of a file.
type mutation struct {
	file
	change
}

// readFile finds the changes of a file. A generated file has none.
func readFile(p goPackage, name string) (file, error) {
	f := file{pkg: p, path: filepath.Join(p.Dir, name), changes: map[int][]change{}}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return file{}, err
	}
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, f.path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	if ast.IsGenerated(syntax) {
		return f, nil
	}
	f.text, f.lines = text, bytes.Count(text, []byte("\n"))
	at := func(p token.Pos) int { return files.Position(p).Offset }
	source := func(n ast.Node) string { return string(text[at(n.Pos()):at(n.End())]) }
	replace := func(from, to token.Pos, with string) {
		if line := files.Position(from).Line; line == files.Position(to).Line {
			f.changes[line] = append(f.changes[line], change{line, at(from), at(to), with})
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.IfStmt:
			replace(n.Cond.Pos(), n.Cond.End(), "!("+source(n.Cond)+")")
		case *ast.BinaryExpr:
			if with, ok := operators[n.Op]; ok {
				replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
			}
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
				replace(n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
			}
		case *ast.ExprStmt:
			if _, ok := n.X.(*ast.CallExpr); ok {
				replace(n.Pos(), n.End(), "")
			}
		case *ast.BranchStmt:
			if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
				replace(n.Pos(), n.End(), "")
			}
		case *ast.ReturnStmt:
			if i := len(n.Results) - 1; i >= 0 && source(n.Results[i]) == "err" {
				replace(n.Results[i].Pos(), n.Results[i].End(), "nil")
			}
		case *ast.CallExpr: // nothing else has the type of ctx, and min and max have no order
			for i := 1; i < len(n.Args); i++ {
				a, b := n.Args[i-1], n.Args[i]
				if source(a) != source(b) && source(a) != "ctx" && source(n.Fun) != "min" && source(n.Fun) != "max" {
					replace(a.Pos(), b.End(), source(b)+", "+source(a))
				}
			}
		}
		return true
	})
	return f, nil
}

// operators maps each operator to one that is easily confused with it.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.EQL: "!=", token.NEQ: "==", token.LAND: "||", token.LOR: "&&",
	token.ADD: "-", token.SUB: "+",
}

// draw draws lines of files at random, each at most once.
type draw struct {
	lines  []mutations
	random *rand.Rand
}

// mutations are those of one line.
type mutations []mutation

func newDraw(seed uint64, files []file) *draw {
	d := &draw{random: rand.New(rand.NewPCG(seed, 0))}
	for _, f := range files {
		for line := range f.lines {
			var all mutations
			for _, c := range f.changes[line+1] {
				all = append(all, mutation{f, c})
			}
			if len(all) > 0 {
				d.lines = append(d.lines, all)
			}
		}
	}
	return d
}

// take draws up to n mutations.
func (d *draw) take(n int) (out []mutation) {
	for range n {
		m, ok := d.next()
		if !ok {
			break
		}
		out = append(out, m)
	}
	return out
}

// next draws a line, and a mutation of it.
func (d *draw) next() (mutation, bool) {
	if len(d.lines) == 0 {
		return mutation{}, false
	}
	i := d.random.IntN(len(d.lines))
	line := d.lines[i]
	d.lines = slices.Delete(d.lines, i, i+1)
	return line[d.random.IntN(len(line))], true
}

// position returns the file, relative to the module, and the line.
func (m mutation) position() string {
	path, err := filepath.Rel(m.pkg.Module.Dir, m.path)
	if err != nil {
		path = m.path
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(path), m.line)
}

// apply returns the file with the change.
func (m mutation) apply() []byte {
	return slices.Concat(m.file.text[:m.from], []byte(m.change.text), m.file.text[m.to:])
}

// diff returns the line before and after the change.
func (m mutation) diff() string {
	line := func(text []byte) string { return strings.Split(string(text), "\n")[m.line-1] }
	return "-" + line(m.file.text) + "\n+" + line(m.apply()) + "\n"
}
