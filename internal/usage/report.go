package usage

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/llm"
)

// Options selects the log and the period of a report.
type Options struct {
	Path  string    // path of the log file
	Since time.Time // uses before this time are ignored; zero means no limit
}

// Report summarizes a usage log. Its lists are sorted by count in descending
// order. Its JSON format is stable: fields may be added but are never renamed.
type Report struct {
	First      time.Time   `json:"first,omitzero"` // time of the oldest counted use
	Interfaces []Interface `json:"faces"`
	Skills     []Skill     `json:"skills"`
	Tools      []Tool      `json:"tools"`
	Scripts    []Tool      `json:"scripts"`
	Models     []Model     `json:"models"`
	// Unknown is the number of loads, files, scripts and calls without a known
	// name.
	Unknown int `json:"unknown"`
	// Damaged is the number of unreadable lines.
	Damaged int `json:"damaged"`
}

// Counts holds the number of uses of each kind, including failed and refused
// ones.
type Counts struct {
	Loads    int       `json:"loads"`
	Files    int       `json:"files"` // files read
	Scripts  int       `json:"scripts"`
	Calls    int       `json:"calls"`
	Tokens   int       `json:"tokens"` // estimated number of delivered tokens
	Failures int       `json:"failures"`
	Refused  int       `json:"refused"`
	Last     time.Time `json:"last"`
}

// Worked returns the number of successful uses.
func (c Counts) Worked() int {
	return c.Loads + c.Files + c.Scripts + c.Calls - c.Failures - c.Refused
}

func (c *Counts) add(u *Use) {
	switch u.Kind {
	case KindLoad:
		c.Loads++
	case KindFile:
		c.Files++
	case KindScript:
		c.Scripts++
	case KindCall:
		c.Calls++
	}
	switch u.Outcome {
	case Failed:
		c.Failures++
	case Refused:
		c.Refused++
	}
	c.Tokens += u.Tokens
	c.Last = laterTime(c.Last, u.Time)
}

// Interface summarizes the uses through one interface of the program. Answers is the
// number of model responses.
type Interface struct {
	Name string `json:"face"`
	Counts
	Answers int `json:"answers"`
}

// Skill summarizes the uses of one skill. Interfaces holds the number of uses
// by interface.
type Skill struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	Counts
	Interfaces map[string]int `json:"faces"`
}

// Tool summarizes the calls of one tool or script. The percentiles are in
// milliseconds, or 0 if there were no calls.
type Tool struct {
	Name    string    `json:"name"`
	Skill   string    `json:"skill"` // skill that provides the tool; "" for the user's own servers
	Key     string    `json:"key"`
	Calls   int       `json:"calls"`
	Errors  int       `json:"errors"`
	Refused int       `json:"refused"`
	P50     float64   `json:"p50_ms"`
	P95     float64   `json:"p95_ms"`
	Last    time.Time `json:"last"`
	// Measured is the number of calls from which the percentiles are computed.
	Measured int `json:"-"`
	elapsed  []time.Duration
}

func (t *Tool) add(u *Use) {
	t.Calls++
	switch u.Outcome {
	case Failed:
		t.Errors++
	case Refused:
		t.Refused++
	}
	if u.Outcome != Refused && u.Took > 0 {
		t.elapsed = append(t.elapsed, u.Took)
	}
	t.Last = laterTime(t.Last, u.Time)
}

func (t *Tool) measure() {
	slices.Sort(t.elapsed)
	t.P50, t.P95 = percentile(t.elapsed, 50), percentile(t.elapsed, 95)
	t.Measured, t.elapsed = len(t.elapsed), nil
}

// percentile returns the p-th percentile of the sorted values in milliseconds.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)*p+99)/100-1]) / float64(time.Millisecond)
}

// Model summarizes the requests to one model.
type Model struct {
	Name    string `json:"name"`
	Answers int    `json:"answers"`
	llm.Usage
	Last time.Time `json:"last"`
}

// Tool returns the summary of an MCP tool by its local name. It returns false
// if the tool has not been called.
func (r *Report) Tool(name string) (Tool, bool) {
	if i := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return r.Tools[i], true
	}
	return Tool{}, false
}

// Read reads a usage log and returns a report, which is empty for an empty log.
// It skips and counts damaged lines.
func Read(o Options) (*Report, error) {
	c := counter{since: o.Since, interfaces: map[string]*Interface{}, skills: map[string]*Skill{}, models: map[string]*Model{},
		tools: map[toolID]*Tool{}, scripts: map[toolID]*Tool{}}
	// Open the newer file first. If it is rotated meanwhile, both handles refer
	// to the same file, and one is dropped.
	newer, err := open(o.Path)
	if err != nil {
		return nil, err
	}
	defer newer.Close()
	older, err := open(rotatedPath(o.Path))
	if err != nil {
		return nil, err
	}
	defer older.Close()
	halves := []*os.File{older, newer}
	if sameFile(older, newer) {
		halves = halves[:1]
	}
	for _, f := range halves {
		if f == nil {
			continue
		}
		if err := c.read(io.LimitReader(f, MaxBytes)); err != nil {
			return nil, fmt.Errorf("read usage log: %w", err)
		}
	}
	return c.report(), nil
}

// open opens one of the log's two files. It returns nil if the file does not
// exist.
func open(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("not a regular file: %s", path)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // the file was rotated meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read usage log: %w", err)
	}
	return f, nil
}

func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	i, err := a.Stat()
	j, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(i, j)
}

// counter accumulates the uses for a report.
type counter struct {
	decoder
	since            time.Time
	first            time.Time
	interfaces       map[string]*Interface
	skills           map[string]*Skill // by key
	models           map[string]*Model
	tools, scripts   map[toolID]*Tool
	unknown, damaged int
}

// toolID identifies a tool by name, or a script by name and skill key.
type toolID struct{ name, key string }

func (c *counter) read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		b, err := in.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) { // longer than any line that this package writes
			long = true
			_, err = in.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return err
		}
		if len(b) > 0 || long {
			c.addLine(b, long)
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (c *counter) addLine(b []byte, long bool) {
	if long || len(b) > maxLine || b[len(b)-1] != '\n' {
		c.damaged++
		return
	}
	u, err := c.decode(b[:len(b)-1])
	switch {
	case err != nil:
		c.damaged++
	case !u.Time.Before(c.since):
		c.add(&u)
	}
}

func (c *counter) add(u *Use) {
	if c.first.IsZero() || u.Time.Before(c.first) {
		c.first = u.Time
	}
	iface := getOrCreate(c.interfaces, u.Interface, func() *Interface { return &Interface{Name: u.Interface} })
	iface.add(u)
	if u.Kind == KindModel {
		iface.Answers++
		m := getOrCreate(c.models, u.Model, func() *Model { return &Model{Name: u.Model} })
		m.Answers, m.Usage, m.Last = m.Answers+1, m.Usage.Add(*u.Usage), laterTime(m.Last, u.Time)
		return
	}
	if u.Key != "" {
		s := getOrCreate(c.skills, u.Key, func() *Skill { return &Skill{Key: u.Key, Interfaces: map[string]int{}} })
		s.add(u)
		s.Name = u.Skill
		s.Interfaces[u.Interface]++
	}
	to, id := c.tools, toolID{u.Tool, ""}
	if u.Kind == KindScript {
		to, id = c.scripts, toolID{u.Tool, u.Key}
	}
	switch {
	case u.Tool != "" && (u.Kind == KindCall || u.Kind == KindScript):
		t := getOrCreate(to, id, func() *Tool { return &Tool{Name: u.Tool} })
		t.Skill, t.Key = u.Skill, u.Key
		t.add(u)
	case u.Key == "":
		c.unknown++
	}
}

func getOrCreate[K comparable, V any](m map[K]*V, k K, fresh func() *V) *V {
	v := m[k]
	if v == nil {
		v = fresh()
		m[k] = v
	}
	return v
}

func (c *counter) report() *Report {
	return &Report{First: c.first, Unknown: c.unknown, Damaged: c.damaged,
		Interfaces: sortByRank(c.interfaces, func(f *Interface) (int, string) { return f.Worked() + f.Answers, f.Name }),
		Skills:     sortByRank(c.skills, func(s *Skill) (int, string) { return s.Worked(), s.Key }),
		Tools:      measureTools(c.tools), Scripts: measureTools(c.scripts),
		Models: sortByRank(c.models, func(m *Model) (int, string) { return m.Answers, m.Name })}
}

func measureTools(m map[toolID]*Tool) []Tool {
	for _, t := range m {
		t.measure()
	}
	return sortByRank(m, func(t *Tool) (int, string) { return t.Calls, t.Name + " " + t.Key })
}

// sortByRank returns the values of m by descending rank, and by name for equal
// ranks.
func sortByRank[K comparable, V any](m map[K]*V, by func(*V) (rank int, name string)) []V {
	all := slices.SortedFunc(maps.Values(m), func(a, b *V) int {
		i, n := by(a)
		j, o := by(b)
		return cmp.Or(cmp.Compare(j, i), cmp.Compare(n, o))
	})
	out := make([]V, len(all))
	for i, v := range all {
		out[i] = *v
	}
	return out
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
