package store

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// NewID returns an id that no other thing has. Those made later sort behind those
// made before by the same process, and mostly by others.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// row is a struct that is a row of a table or of a question: fields are pointers to
// what its columns hold, in their order.
type row[T any] interface {
	*T
	fields() []any
}

// one returns the row that a question has for an answer.
func one[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) (T, error) {
	found, err := collect[T, P](ctx, c, false, query, args...)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return *new(T), err
	}
	return found[0], nil
}

// all returns the rows that a question has for an answer.
func all[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	return collect[T, P](ctx, c, false, query, args...)
}

// changed returns the rows that a change returns.
func changed[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	return collect[T, P](ctx, c, true, query, args...)
}

func collect[T any, P row[T]](ctx context.Context, c conn, write bool, query string, args ...any) ([]T, error) {
	var out []T
	err := c.query(ctx, write, func(rows *sql.Rows) error {
		var r T
		if err := rows.Scan(P(&r).fields()...); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		out = append(out, r)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// value is the answer to a question that has a single one.
type value[T any] struct{ V T }

func (v *value[T]) fields() []any { return []any{&v.V} }

func scalar[T any](ctx context.Context, c conn, query string, args ...any) (T, error) {
	v, err := one[value[T]](ctx, c, query, args...)
	return v.V, err
}

func scalars[T any](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	found, err := all[value[T]](ctx, c, query, args...)
	out := make([]T, len(found))
	for i, v := range found {
		out[i] = v.V
	}
	return out, err
}

// insert adds a row.
func (c conn) insert(ctx context.Context, table, columns string, fields []any) error {
	_, err := c.exec(ctx, "INSERT INTO "+table+" ("+columns+") VALUES ("+places(1, len(fields))+")", fields...)
	return err
}

// mustChange is an [ErrNotFound] where a statement changed no row.
func (c conn) mustChange(ctx context.Context, query string, args ...any) error {
	n, err := c.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// places are n placeholders from $first on.
func places(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(first+i))
	}
	return b.String()
}

// anys are values as arguments.
func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// bind makes of arguments what both drivers take the same way, and refuses what
// one of them would keep and the other not.
func bind(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch text, ok := v.(string); {
		case !ok:
		case len(text) > MaxValue:
			return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalid, len(text), MaxValue)
		case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
			return nil, fmt.Errorf("%w: it is no text", ErrInvalid)
		}
		out[i] = v
	}
	return out, nil
}

// stamp is a time as it is kept: milliseconds since 1970, 0 for none.
type stamp time.Time

func (s stamp) Value() (driver.Value, error) { return millis(time.Time(s)), nil }

func (s *stamp) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T is no time", v)
	}
	*s = stamp(moment(n))
	return nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// now is the time as it is kept.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// orNow sets a time that was not given, and makes one that was what will be read.
func orNow(t *time.Time) {
	if t.IsZero() {
		*t = now()
	}
	*t = moment(millis(*t))
}

// orID sets an id that was not given.
func orID(id *string) {
	if *id == "" {
		*id = NewID()
	}
}

// document is JSON as it is kept: as it was given, "" for none.
type document json.RawMessage

func (d document) Value() (driver.Value, error) {
	if len(d) > 0 && !json.Valid(d) {
		return nil, fmt.Errorf("%w: it is no JSON", ErrInvalid)
	}
	return string(d), nil
}

func (d *document) Scan(v any) error {
	switch v := v.(type) {
	case string:
		*d = document(v)
	case []byte:
		*d = bytes.Clone(v)
	default:
		return fmt.Errorf("%T is no JSON", v)
	}
	if len(*d) == 0 {
		*d = nil
	}
	return nil
}

// list is a list of texts as it is kept: a JSON array, "" for none.
type list []string

func (l list) Value() (driver.Value, error) {
	if len(l) == 0 {
		return "", nil
	}
	data, err := json.Marshal([]string(l))
	return string(data), err
}

func (l *list) Scan(v any) error {
	var d document
	if err := d.Scan(v); err != nil || d == nil {
		*l = nil
		return err
	}
	return json.Unmarshal(d, (*[]string)(l))
}

// Bounds of a page.
const (
	defaultPage = 50
	MaxPage     = 500
)

// Page asks for a part of a list. The zero value is the first.
type Page struct {
	// After is what the page before returned as next; "" is the beginning. One that is
	// none is refused with [ErrInvalid].
	After string
	// Limit is how many to return; 0 is 50, and more than [MaxPage] is that.
	Limit int
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return defaultPage
	}
	return min(p.Limit, MaxPage)
}

// keys are what the last row of the page before was sorted by, n texts; before the
// first row they are empty.
func (p Page) keys(n int) ([]string, error) {
	if p.After == "" {
		return make([]string, n), nil
	}
	var keys []string
	data, err := base64.RawURLEncoding.DecodeString(p.After)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil || len(keys) != n {
		return nil, fmt.Errorf("%w: %.20q is no place in this list", ErrInvalid, p.After)
	}
	return keys, nil
}

// cut returns the rows of a page of which one more than it holds was asked for, and
// how the next one begins, "" where there is none.
func cut[T any](p Page, rows []T, keys func(T) []string) ([]T, string) {
	n := p.limit()
	if len(rows) <= n {
		return rows, ""
	}
	rows = slices.Clip(rows[:n])
	data, _ := json.Marshal(keys(rows[n-1])) // of texts, which cannot fail
	return rows, base64.RawURLEncoding.EncodeToString(data)
}
