package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func record(reason string) policy.Record {
	return policy.Record{Principal: policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}, Action: "run", Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)), Name: "pdf", Decision: policy.Deny, Reason: reason}
}

func newLog(t *testing.T) (*audit.Log, string) {
	path := filepath.Join(t.TempDir(), "state", "audit.jsonl")
	return audit.New(path), path
}

func reasons(t *testing.T, a *audit.Log, n int) (out []string, problems int) {
	t.Helper()
	records, ps, err := a.Read(t.Context(), n)
	try(t, err)
	for _, r := range records {
		out = append(out, r.Reason)
	}
	return out, len(ps)
}

func TestRecordsRoundTrip(t *testing.T) {
	a, _ := newLog(t)
	if records, problems, err := a.Read(t.Context(), 9); err != nil || len(records)+len(problems) > 0 {
		t.Errorf("where no log: %v %v %v", records, problems, err)
	}
	want := record("指南 <b> \"quoted\"")
	want.Time = time.Date(2026, 11, 20, 10, 11, 12, 123456789, time.UTC)
	want.Details = map[string]string{"network": "example.com", "code": "x"}
	try(t, a.Append(t.Context(), want))
	records, problems, err := a.Read(t.Context(), 9)
	if diff := cmp.Diff([]policy.Record{want}, records); diff != "" || len(problems) > 0 || err != nil {
		t.Errorf("read %v %v (-appended +read):\n%s", problems, err, diff)
	}
}

func TestReadReturnsNewestRecords(t *testing.T) {
	a, path := newLog(t)
	var all []string
	for i := range 700 { // several blocks
		all = append(all, fmt.Sprint(i, strings.Repeat("x", i)))
		try(t, a.Append(t.Context(), record(all[i])))
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 4*64<<10 {
		t.Fatalf("the log is too small for the test: %v %v", info, err)
	}
	for _, n := range []int{-1, 0, 1, 2, 333, 699, 700, 701} {
		got, problems := reasons(t, a, n)
		if want := all[700-min(max(n, 0), 700):]; !cmp.Equal(got, want, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })) || problems > 0 {
			t.Errorf("the last %d: got %d records with %d problems, which are not the last", n, len(got), problems)
		}
	}
}

func TestTornLineHarmsNoOther(t *testing.T) {
	for _, torn := range []string{"{", `{"time":"2026-11-20T10:11:12Z","action":"run"`, "\x00\x00\x00", `"`} {
		a, path := newLog(t)
		try(t, a.Append(t.Context(), record("one")))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		try(t, err)
		_, err = f.WriteString(torn)
		try(t, err)
		try(t, f.Close())
		if got, problems := reasons(t, a, 9); !cmp.Equal(got, []string{"one"}) || problems != 0 {
			t.Errorf("with %q at its end the log has %q and %d problems, want one record", torn, got, problems)
		}
		try(t, a.Append(t.Context(), record("two")))
		if got, problems := reasons(t, a, 9); !cmp.Equal(got, []string{"one", "two"}) || problems != 1 {
			t.Errorf("with %q between them the log has %q and %d problems, want two records and one problem", torn, got, problems)
		}
	}
}

// A record with a line of more than 1 MiB is not read, even if it is valid.
func TestTooLongLineIsDropped(t *testing.T) {
	a, path := newLog(t)
	try(t, a.Append(t.Context(), record("one")))
	text, err := os.ReadFile(path)
	try(t, err)
	for _, tt := range []struct{ size, records int }{{1 << 20, 3}, {1<<20 + 1, 2}, {3 << 20, 2}} {
		padded := strings.Replace(string(text), "{", "{"+strings.Repeat(" ", tt.size-len(text)+len("\n")), 1)
		try(t, os.WriteFile(path, []byte(string(text)+padded+string(text)), 0o600))
		if got, problems := reasons(t, a, 9); len(got) != tt.records || problems != 3-tt.records {
			t.Errorf("with a line of %d bytes: %d records and %d problems, want %d records", tt.size, len(got), problems, tt.records)
		}
	}
}

func TestUnterminatedLineIsDropped(t *testing.T) {
	a, path := newLog(t)
	try(t, a.Append(t.Context(), record("one")))
	text, err := os.ReadFile(path)
	try(t, err)
	long := strings.Repeat("x", 3<<20)
	try(t, os.WriteFile(path, []byte(string(text)+long+"\n"+string(text)), 0o600))
	if got, problems := reasons(t, a, 9); !cmp.Equal(got, []string{"one", "one"}) || problems != 1 {
		t.Errorf("got %q and %d problems, want both records and one problem", got, problems)
	}
	try(t, os.WriteFile(path, []byte(long+"\n"+string(text)), 0o600))
	if got, problems := reasons(t, a, 9); !cmp.Equal(got, []string{"one"}) || problems != 1 {
		t.Errorf("got %q and %d problems, want the record and one problem", got, problems)
	}
}

func TestRecordTextIsLimitedAndPrintable(t *testing.T) {
	a, path := newLog(t)
	hostile := "\x1b[2J\u202e\xff\n" + strings.Repeat("é", 1<<20)
	r := record(hostile)
	r.Principal.ID, r.Action, r.Name, r.Subject = hostile, hostile, hostile, policy.Digest(hostile)
	r.Details = map[string]string{}
	for i := range 100 {
		r.Details[fmt.Sprintf("%03d%s", i, hostile)] = hostile
	}
	try(t, a.Append(t.Context(), r))
	text, err := os.ReadFile(path)
	try(t, err)
	if len(text) > 256<<10 || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the record has %d bytes in %d lines", len(text), strings.Count(string(text), "\n"))
	}
	records, _, err := a.Read(t.Context(), 1)
	try(t, err)
	got := records[0]
	texts := []string{got.Principal.ID, got.Action, got.Name, string(got.Subject), got.Reason}
	for k, v := range got.Details {
		texts = append(texts, k, v)
	}
	for _, s := range texts {
		if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(s, `\x1b[2J\u202e\xff\n`) || !strings.HasSuffix(s, " bytes more)") {
			t.Fatalf("kept as %q", s)
		}
	}
	if len(got.Details) != 32 {
		t.Errorf("%d details are stored, want 32", len(got.Details))
	}
}

func TestRecordWithoutVerdictIsRefused(t *testing.T) {
	a, path := newLog(t)
	r := record("")
	r.Decision = "perhaps"
	if err := a.Append(t.Context(), r); err == nil {
		t.Error("it was appended")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the log was made")
	}
}

func TestConcurrentAppendsKeepAllRecords(t *testing.T) {
	a, _ := newLog(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				if err := a.Append(t.Context(), record(fmt.Sprint(i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, problems := reasons(t, a, 1000)
	seen := map[string]bool{}
	for _, r := range got {
		seen[r] = true
	}
	if len(seen) != 80 || len(got) != 80 || problems > 0 {
		t.Errorf("%d records, %d of them different, %d problems; want 80", len(got), len(seen), problems)
	}
}

func TestLongTextIsTruncatedBetweenCharacters(t *testing.T) {
	a, _ := newLog(t)
	for i := range 4 {
		try(t, a.Append(t.Context(), record(strings.Repeat("x", i)+strings.Repeat("😀", 1000))))
	}
	got, _ := reasons(t, a, 4)
	for i, r := range got {
		if r = strings.TrimLeft(r, "x"); strings.Contains(r, `\`) || !strings.HasSuffix(r, "😀… ("+fmt.Sprint(4000-4*strings.Count(r, "😀"))+" bytes more)") {
			t.Errorf("after %d bytes it is cut as %q", i, r[len(r)-40:])
		}
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
