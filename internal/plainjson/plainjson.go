// Package plainjson encodes JSON without escaping HTML, so that models and users
// read "<" rather than "\u003c".
package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Line encodes v on one line, without a final newline.
func Line(v any) ([]byte, error) {
	data, err := encode(v, "")
	return bytes.TrimSuffix(data, []byte("\n")), err
}

// Indented encodes v with an indentation of two spaces and a final newline.
func Indented(v any) ([]byte, error) { return encode(v, "  ") }

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Canonical returns a JSON value on one line, without insignificant white space
// and with sorted keys. Numbers keep their digits.
func Canonical(value []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber() // a float64 does not hold all digits
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more data after a JSON value")
	}
	return Line(v)
}
