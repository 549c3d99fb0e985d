package scan

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// maxNotebook is the maximum size, in bytes, of a notebook whose cells are read.
const maxNotebook = MaxFileBytes

// isNotebook reports whether a file is a Jupyter notebook.
func isNotebook(name string) bool { return strings.ToLower(path.Ext(name)) == ".ipynb" }

// notebookCells returns the code and the Markdown of a notebook's cells, each as
// a source whose lines are those of the file, or nil if the file is not valid.
func notebookCells(t *source) (code, prose, shellCode *source) {
	if len(t.data) > maxNotebook {
		return nil, nil, nil
	}
	empty := func() *source { return &source{name: t.name, line: 1, column: 1, lines: []int{}} }
	code, prose, shellCode = empty(), empty(), empty()
	d := json.NewDecoder(bytes.NewReader(t.data))
	r := notebookReader{file: t, decoder: d, shell: shellCode}
	if !r.readObject(func(key string) bool {
		if key != "cells" {
			return r.skip()
		}
		return r.readArray(func() bool { return r.readCell(code, prose) })
	}) {
		return nil, nil, nil
	}
	return code, prose, shellCode
}

// notebookReader reads the parts of a notebook with their positions.
type notebookReader struct {
	file    *source
	decoder *json.Decoder
	shell   *source // cells in shell
}

var isShellCell = lazyregexp.New(`^\s*%%(?:bash|sh|script\s+(?:ba)?sh)\b`)

func (r *notebookReader) skip() bool {
	var raw json.RawMessage
	return r.decoder.Decode(&raw) == nil
}

// skipRest skips the rest of a value whose first token is given.
func (r *notebookReader) skipRest(first json.Token) bool {
	depth := 0
	for next, err := first, error(nil); ; next, err = r.decoder.Token() {
		if err != nil {
			return false
		}
		switch next {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return true
		}
	}
}

// readObject calls field before the value of each key of an object. It skips a value of
// another type.
func (r *notebookReader) readObject(field func(key string) bool) bool {
	if first, err := r.decoder.Token(); err != nil || first != json.Delim('{') {
		return err == nil && r.skipRest(first)
	}
	for r.decoder.More() {
		key, err := r.decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok || !field(name) {
			return false
		}
	}
	_, err := r.decoder.Token()
	return err == nil
}

// readArray calls element before each value of an array. It skips a value of another type.
func (r *notebookReader) readArray(element func() bool) bool {
	if first, err := r.decoder.Token(); err != nil || first != json.Delim('[') {
		return err == nil && r.skipRest(first)
	}
	for r.decoder.More() {
		if !element() {
			return false
		}
	}
	_, err := r.decoder.Token()
	return err == nil
}

// cellText is the text of a cell, with the line of each part in the file.
type cellText struct {
	text string
	line int
}

func (r *notebookReader) readCell(code, prose *source) bool {
	kind, parts := "", []cellText(nil)
	ok := r.readObject(func(key string) bool {
		switch key {
		case "cell_type":
			var v any
			err := r.decoder.Decode(&v)
			kind, _ = v.(string)
			return err == nil
		case "source":
			return r.readSource(&parts)
		}
		return r.skip()
	})
	to := code
	if len(parts) > 0 && isShellCell.MatchString(parts[0].text) {
		to = r.shell
	}
	if kind == "markdown" || kind == "raw" {
		to = prose
	}
	for i, p := range parts {
		text := p.text
		if i == len(parts)-1 {
			text += "\n\n"
		}
		to.data = append(to.data, text...)
		for range strings.Count(text, "\n") {
			to.lines = append(to.lines, p.line)
		}
	}
	return ok
}

// readSource reads the text of a cell: a string or an array of strings.
func (r *notebookReader) readSource(parts *[]cellText) bool {
	add := func() bool {
		t, err := r.decoder.Token()
		text, ok := t.(string)
		if ok {
			end := int(r.decoder.InputOffset())
			r.file.moveTo(min(end, len(r.file.data)))
			*parts = append(*parts, cellText{text, r.file.line})
		}
		return err == nil && (ok || r.skipRest(t))
	}
	first, err := r.decoder.Token()
	switch v := first.(type) {
	case string:
		r.file.moveTo(min(int(r.decoder.InputOffset()), len(r.file.data)))
		*parts = append(*parts, cellText{v, r.file.line})
		return err == nil
	case json.Delim:
		if v != '[' {
			return r.skipRest(v)
		}
		for r.decoder.More() {
			if !add() {
				return false
			}
		}
		_, err = r.decoder.Token()
		return err == nil
	}
	return err == nil
}
