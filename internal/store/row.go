package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// lastID is the timestamp in the latest ID, in units of 1/4096 ms.
var lastID atomic.Int64

// NewID returns a version 7 UUID. IDs from one process sort in order of
// creation; IDs from different processes sort by time.
func NewID() string {
	now := time.Now().UnixNano()
	at := now/1e6<<12 | now%1e6>>8
	for {
		last := lastID.Load()
		at = max(at, last+1)
		if lastID.CompareAndSwap(last, at) {
			break
		}
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(at>>12<<16|7<<12|at&0xfff))
	rand.Read(id[8:])
	return formatID(id)
}

// DeriveID returns a version 8 UUID that depends only on a time and a seed. It sorts
// among the IDs of [NewID] by this time, in milliseconds.
func DeriveID(at time.Time, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	var id [16]byte
	copy(id[6:], sum[:])
	id[6] = id[6]&0x0f | 8<<4
	ms := uint64(max(0, at.UnixMilli()))
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return formatID(id)
}

// formatID sets the variant of RFC 9562 and formats a UUID.
func formatID(id [16]byte) string {
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// row is a constraint for pointers to structs that hold a result row. Its
// fields method returns pointers to the columns, in order.
type row[T any] interface {
	*T
	fields() []any
}

// queryOne returns the first row of a query, or [ErrNotFound] if there is none.
func queryOne[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) (T, error) {
	found, err := collectRows[T, P](ctx, c, false, query, args...)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return *new(T), err
	}
	return found[0], nil
}

func queryAll[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	return collectRows[T, P](ctx, c, false, query, args...)
}

// execReturning executes a statement with a RETURNING clause and returns its rows.
func execReturning[T any, P row[T]](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	return collectRows[T, P](ctx, c, true, query, args...)
}

func collectRows[T any, P row[T]](ctx context.Context, c conn, write bool, query string, args ...any) ([]T, error) {
	var out []T
	err := c.query(ctx, write, func(rows *sql.Rows) error {
		var r T
		if err := scanRow(rows, P(&r).fields()...); err != nil {
			return err
		}
		out = append(out, r)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// scanRow copies the columns of the current row to fields. It fails with
// [ErrCorrupt] if a column cannot be converted.
func scanRow(rows *sql.Rows, fields ...any) error {
	err := rows.Scan(fields...)
	if err == nil {
		return nil
	}
	if ended := rows.Err(); ended != nil { // the context was cancelled since rows.Next
		return ended
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// scalarRow is a row with one column.
type scalarRow[T any] struct{ V T }

func (v *scalarRow[T]) fields() []any { return []any{&v.V} }

func queryScalar[T any](ctx context.Context, c conn, query string, args ...any) (T, error) {
	v, err := queryOne[scalarRow[T]](ctx, c, query, args...)
	return v.V, err
}

func queryScalars[T any](ctx context.Context, c conn, query string, args ...any) ([]T, error) {
	found, err := queryAll[scalarRow[T]](ctx, c, query, args...)
	out := make([]T, len(found))
	for i, v := range found {
		out[i] = v.V
	}
	return out, err
}

func (c conn) insert(ctx context.Context, table, columns string, fields []any) error {
	_, err := c.exec(ctx, "INSERT INTO "+table+" ("+columns+") VALUES ("+placeholders(1, len(fields))+")", fields...)
	return err
}

// execAffecting executes a statement. It fails with [ErrNotFound] if no row
// changed.
func (c conn) execAffecting(ctx context.Context, query string, args ...any) error {
	n, err := c.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// placeholders returns n comma-separated placeholders, starting with $first.
func placeholders(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(first+i))
	}
	return b.String()
}

// toArgs converts values to query arguments.
func toArgs[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// bindArgs converts query arguments so that both drivers treat them alike. It
// rejects values that only one of the databases would store.
func bindArgs(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch text, ok := v.(string); {
		case !ok:
		case len(text) > MaxValue:
			return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrInvalid, len(text), MaxValue)
		case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
			return nil, fmt.Errorf("%w: not valid text", ErrInvalid)
		}
		out[i] = v
	}
	return out, nil
}

// timestamp is stored as milliseconds since 1970; the zero time is stored as 0.
type timestamp time.Time

func (s timestamp) Value() (driver.Value, error) { return toMillis(time.Time(s)), nil }

func (s *timestamp) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T cannot be scanned as a timestamp", v)
	}
	*s = timestamp(fromMillis(n))
	return nil
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// now returns the current time, truncated to the precision of the database.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// setDefaultTime sets t to the current time if it is zero, and truncates it to
// the precision of the database.
func setDefaultTime(t *time.Time) {
	if t.IsZero() {
		*t = now()
	}
	*t = fromMillis(toMillis(*t))
}

// setDefaultID sets id to a new ID if it is empty.
func setDefaultID(id *string) {
	if *id == "" {
		*id = NewID()
	}
}

// jsonText is JSON stored as unchanged text; nil is stored as "".
type jsonText json.RawMessage

func (d jsonText) Value() (driver.Value, error) {
	if len(d) > 0 && !json.Valid(d) {
		return nil, fmt.Errorf("%w: not valid JSON", ErrInvalid)
	}
	return string(d), nil
}

func (d *jsonText) Scan(v any) error {
	switch v := v.(type) {
	case string:
		*d = jsonText(v)
	case []byte:
		*d = bytes.Clone(v)
	default:
		return fmt.Errorf("%T cannot be scanned as JSON", v)
	}
	if len(*d) == 0 {
		*d = nil
	}
	return nil
}

// stringList is stored as a JSON array; an empty list is stored as "".
type stringList []string

func (l stringList) Value() (driver.Value, error) {
	if len(l) == 0 {
		return "", nil
	}
	data, err := json.Marshal([]string(l))
	return string(data), err
}

func (l *stringList) Scan(v any) error {
	var d jsonText
	if err := d.Scan(v); err != nil || d == nil {
		*l = nil
		return err
	}
	return json.Unmarshal(d, (*[]string)(l))
}

// Page sizes.
const (
	defaultPage = 50
	MaxPage     = 500
)

// Page selects part of a list. The zero value selects the first page.
type Page struct {
	// After is the cursor returned with the previous page; "" selects the first
	// page. A malformed cursor fails with [ErrInvalid].
	After string
	// Limit is the maximum number of items; 0 means 50, and more than [MaxPage]
	// means [MaxPage].
	Limit int
}

// Size returns the maximum number of items on the page.
func (p Page) Size() int {
	if p.Limit <= 0 {
		return defaultPage
	}
	return min(p.Limit, MaxPage)
}

// decodeCursor returns the n sort keys of the last row on the previous page.
// The keys are empty for the first page.
func (p Page) decodeCursor(n int) ([]string, error) {
	if p.After == "" {
		return make([]string, n), nil
	}
	var keys []string
	data, err := base64.RawURLEncoding.DecodeString(p.After)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil || len(keys) != n {
		return nil, fmt.Errorf("%w: malformed page cursor %.20q", ErrInvalid, p.After)
	}
	return keys, nil
}

// cutPage truncates rows to the page size and returns them with the cursor of
// the next page, or "" if there is none. A next page exists if rows has more
// rows than fit on the page.
func cutPage[T any](p Page, rows []T, keys func(T) []string) ([]T, string) {
	n := p.Size()
	if len(rows) <= n {
		return rows, ""
	}
	rows = slices.Clip(rows[:n])
	return rows, encodeCursor(keys(rows[n-1]))
}

// encodeCursor returns the cursor of the page after the row with the given sort
// keys.
func encodeCursor(keys []string) string {
	data, _ := json.Marshal(keys) // cannot fail for strings
	return base64.RawURLEncoding.EncodeToString(data)
}
