// Command catalog measures what it costs to know many skills, beside the bare
// system calls that nobody can do without, in one process and interleaved:
//
//	genskills -n 10000 -out /tmp/skills
//	go run ./bench/catalog -dir /tmp/skills
//
// Times are CPU time of the process (user and system), the median of the
// rounds, in milliseconds unless a row says otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "directory of skills, as genskills makes")
	rounds := flag.Int("rounds", 7, "rounds")
	gc := flag.Int("gc", 400, "GC percent, as the command sets it")
	flag.Parse()
	if *dir == "" {
		flag.Usage()
		os.Exit(2)
	}
	debug.SetGCPercent(*gc)
	b, err := newBench(*dir)
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(b.tmp)
	for range *rounds {
		if err := b.round(); err != nil {
			log.Fatal(err)
		}
	}
	b.print()
}

type bench struct {
	dir, tmp string
	names    []string
	rows     []string
	took     map[string][]time.Duration
	skills   int
	heap     uint64
	peak     int64
	textSize int
}

func newBench(dir string) (*bench, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, took: map[string][]time.Duration{}}
	for _, e := range entries {
		b.names = append(b.names, e.Name())
	}
	b.tmp, err = os.MkdirTemp("", "loadout-bench-*")
	return b, err
}

// cpu is the CPU time of this process so far.
func cpu() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		log.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// measure runs f and adds what it took to the row.
func (b *bench) measure(row string, f func() error) error {
	runtime.GC()
	start := cpu()
	err := f()
	b.add(row, cpu()-start)
	return err
}

func (b *bench) add(row string, d time.Duration) {
	if b.took[row] == nil {
		b.rows = append(b.rows, row)
	}
	b.took[row] = append(b.took[row], d)
}

const (
	rowRead    = "limit: open, read 4 KiB, close each SKILL.md"
	rowStat    = "limit: stat each SKILL.md"
	rowScan    = "first scan"
	rowSaved   = "first scan, and saving the index"
	rowRestart = "restart from the saved index"
	rowRescan  = "scan again after one change"
	rowText    = "catalog text of everything"
	rowBounded = "catalog text in 2,000 characters"
	rowBody    = "limit: read one SKILL.md (µs)"
	rowLoad    = "activation of one skill (µs)"
)

func (b *bench) round() error {
	ctx := context.Background()
	buf := make([]byte, 4<<10)
	steps := []error{
		b.measure(rowRead, func() error { return b.readAll(buf) }),
		b.measure(rowStat, b.statAll),
		b.measure(rowScan, func() error { _, err := b.open(ctx, ""); return err }),
	}
	index := filepath.Join(b.tmp, "index")
	if err := os.RemoveAll(index); err != nil {
		return err
	}
	steps = append(steps, b.measure(rowSaved, func() error { _, err := b.open(ctx, index); return err }))
	var c *catalog.Catalog
	steps = append(steps, b.measure(rowRestart, func() (err error) { c, err = b.open(ctx, index); return err }))
	steps = append(steps, b.change(ctx, c))
	all := c.Snapshot().Offered()
	steps = append(steps,
		b.measure(rowText, func() error { b.textSize = len(catalog.Text(all, catalog.TextOptions{})); return nil }),
		b.measure(rowBounded, func() error { catalog.Text(all, catalog.TextOptions{Characters: 2000}); return nil }),
		b.activate(ctx, c))
	b.skills = len(all)
	b.memory(c)
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) readAll(buf []byte) error {
	root, err := syscall.Open(b.dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(root)
	for _, n := range b.names {
		fd, err := syscall.Openat(root, n+"/SKILL.md", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = syscall.Read(fd, buf)
		syscall.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) statAll() error {
	var st syscall.Stat_t
	for _, n := range b.names {
		if err := syscall.Stat(b.dir+"/"+n+"/SKILL.md", &st); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) open(ctx context.Context, index string) (*catalog.Catalog, error) {
	c, err := catalog.New([]catalog.Source{catalog.NewDir("bench", catalog.User, b.dir, &catalog.DirOptions{IndexFile: index})}, nil)
	if err != nil {
		return nil, err
	}
	return c, c.Reload(ctx)
}

// change edits one skill and scans again.
func (b *bench) change(ctx context.Context, c *catalog.Catalog) error {
	file := filepath.Join(b.dir, b.names[len(b.names)/2], "SKILL.md")
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	defer os.WriteFile(file, old, 0o644)
	if err := os.WriteFile(file, append(slices.Clone(old), '\n'), 0o644); err != nil {
		return err
	}
	return b.measure(rowRescan, func() error { return c.Reload(ctx) })
}

// activate loads skills of about 15 KB, a new one each time, and reads as
// many in the barest way.
func (b *bench) activate(ctx context.Context, c *catalog.Catalog) error {
	rt, err := loadout.New(ctx, &loadout.Options{Sources: c.Sources()})
	if err != nil {
		return err
	}
	defer rt.Close()
	var chosen []*catalog.Entry
	for _, e := range c.Snapshot().Skills() {
		if fi, err := os.Stat(e.Path + "/SKILL.md"); err == nil && fi.Size() > 13_000 && fi.Size() < 17_000 && len(chosen) < 400 {
			chosen = append(chosen, e)
		}
	}
	buf := make([]byte, 64<<10)
	for _, e := range chosen { // once for the page cache and for counting tokens
		if _, err := rt.Fetch(ctx, e.Name); err != nil {
			return err
		}
	}
	start := cpu()
	for _, e := range chosen {
		fd, err := syscall.Open(e.Path+"/SKILL.md", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = syscall.Read(fd, buf)
		syscall.Close(fd)
		if err != nil {
			return err
		}
	}
	n := time.Duration(max(len(chosen), 1))
	b.add(rowBody, (cpu()-start)*1000/n)
	start = cpu()
	for _, e := range chosen {
		if _, err := rt.Fetch(ctx, e.Name); err != nil {
			return err
		}
	}
	b.add(rowLoad, (cpu()-start)*1000/n)
	return nil
}

func (b *bench) memory(c *catalog.Catalog) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	with := m.HeapAlloc
	runtime.KeepAlive(c)
	b.heap = with
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		b.peak = ru.Maxrss
	}
}

func (b *bench) print() {
	fmt.Printf("%d skills, %d rounds, %s\n\n| what | median | range |\n| --- | --- | --- |\n", b.skills, len(b.took[rowScan]), runtime.Version())
	for _, row := range b.rows {
		t := slices.Sorted(slices.Values(b.took[row]))
		fmt.Printf("| %s | %s | %s–%s |\n", row, ms(t[len(t)/2]), ms(t[0]), ms(t[len(t)-1]))
	}
	ratio := func(a, c string) string {
		x, y := slices.Sorted(slices.Values(b.took[a])), slices.Sorted(slices.Values(b.took[c]))
		return fmt.Sprintf("%.1f", float64(x[len(x)/2])/float64(y[len(y)/2]))
	}
	fmt.Printf("\nFirst scan over reading: %s×. Restart over stat: %s×. Heap with the catalog: %.1f MB. Peak of the process: %.0f MB. Catalog text: %d bytes.\n",
		ratio(rowScan, rowRead), ratio(rowRestart, rowStat), float64(b.heap)/1e6, float64(b.peak)/1e3, b.textSize)
	fmt.Println(strings.TrimSpace(""))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
