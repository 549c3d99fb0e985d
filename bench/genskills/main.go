// Command genskills writes synthetic skills whose sizes follow the distribution of 256 public
// ones: at p10/p50/p90, SKILL.md has 4.0/11.6/23.8 KB, the description has 142/322/590 characters,
// and there are 1/5/16 other files of 0.7/6.4/20 KB. The same flags always give the same bytes:
//
//	go run ./genskills -n 10000 -out /tmp/sk-10000
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// lognormal is a clamped log-normal size distribution.
type lognormal struct {
	median, sigma float64
	min, max      int
}

func (d lognormal) draw(r *rand.Rand) int {
	return min(max(int(d.median*math.Exp(d.sigma*r.NormFloat64())), d.min), d.max)
}

var (
	skillBytes  = lognormal{11500, 0.65, 600, 74000}
	descChars   = lognormal{322, 0.47, 60, 1000}
	bundleCount = lognormal{5, 0.95, 0, 90}
	bundleBytes = lognormal{6400, 1.0, 60, 240000}
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("genskills: ")
	n := flag.Int("n", 100, "number of skills")
	seed := flag.Uint64("seed", 1, "random seed")
	out := flag.String("out", "", "directory to create (must not exist)")
	scale := flag.Float64("bundle-scale", 1, "multiply the sizes of bundled files (not of SKILL.md)")
	flag.Parse()
	if *out == "" || flag.NArg() != 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := os.Mkdir(*out, 0o755); err != nil {
		log.Fatal(err)
	}
	var next, files, bytes atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(*n) {
					return
				}
				s := newSkill(*seed, uint64(i), *scale)
				nf, nb, err := s.write(*out)
				if err != nil {
					log.Fatal(err)
				}
				files.Add(int64(nf))
				bytes.Add(int64(nb))
			}
		})
	}
	wg.Wait()
	fmt.Printf("skills=%d files=%d bytes=%d seed=%d\n", *n, files.Load(), bytes.Load(), *seed)
}

type file struct {
	path string
	size int
}

type skill struct {
	r     *rand.Rand
	name  string
	desc  string
	size  int
	files []file
	scale float64
}

func newSkill(seed, i uint64, scale float64) *skill {
	s := &skill{r: rand.New(rand.NewPCG(seed, i)), scale: scale}
	verb, object, domain := pick(s.r, verbs), pick(s.r, objects), pick(s.r, domains)
	s.name = fmt.Sprintf("%s-%s-%s-%05d", domain, object, verb.base, i)
	s.desc = describe(s.r, verb, object, domain, descChars.draw(s.r))
	s.size = skillBytes.draw(s.r)
	for k := range bundleCount.draw(s.r) {
		kind := bundleKinds[s.r.IntN(len(bundleKinds))]
		s.files = append(s.files, file{
			path: fmt.Sprintf(kind, pick(s.r, objects), k),
			size: int(float64(bundleBytes.draw(s.r)) * scale),
		})
	}
	return s
}

var bundleKinds = []string{
	"references/%s-%d.md", "references/%s-%d.md", "references/%s-%d.md",
	"scripts/%s_%d.py", "scripts/%s_%d.py", "scripts/%s_%d.sh",
	"assets/%s-%d.json", "%s-%d.md",
}

func (s *skill) write(root string) (files, bytes int, err error) {
	dir := filepath.Join(root, s.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, 0, err
	}
	put := func(path string, fill func(*bufio.Writer) int) error {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		f, err := os.Create(full)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		files++
		bytes += fill(w)
		if err := w.Flush(); err != nil {
			return err
		}
		return f.Close()
	}
	if err := put("SKILL.md", s.skillMD); err != nil {
		return 0, 0, err
	}
	for _, f := range s.files {
		if err := put(f.path, func(w *bufio.Writer) int { return markdown(w, s.r, f.size) }); err != nil {
			return 0, 0, err
		}
	}
	return files, bytes, nil
}

func (s *skill) skillMD(w *bufio.Writer) int {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\n", s.name)
	switch s.r.IntN(4) { // the spellings real files use
	case 0:
		fmt.Fprintf(&b, "description: %q\n", s.desc)
	case 1:
		b.WriteString("description: >-\n")
		for line := range strings.Lines(wrap(s.desc, 90)) {
			b.WriteString("  " + line)
		}
		b.WriteByte('\n')
	default:
		fmt.Fprintf(&b, "description: %s\n", s.desc)
	}
	if s.r.IntN(2) == 0 {
		b.WriteString("license: MIT\n")
	}
	if s.r.IntN(3) == 0 {
		b.WriteString("allowed-tools: Read Write Bash(python:*)\n")
	}
	if s.r.IntN(4) == 0 {
		fmt.Fprintf(&b, "metadata:\n  version: \"1.%d\"\n  author: author-%d\n", s.r.IntN(9), s.r.IntN(200))
	}
	fmt.Fprintf(&b, "---\n\n# %s\n\n%s\n\n", strings.ReplaceAll(s.name, "-", " "), s.desc)
	for _, f := range s.files[:min(len(s.files), 6)] {
		fmt.Fprintf(&b, "- See `%s` for details.\n", f.path)
	}
	n, _ := w.WriteString(b.String())
	return n + markdown(w, s.r, s.size-n)
}

// describe builds a description of about n characters that says what the
// skill does and when to use it, in plain-scalar-safe YAML.
func describe(r *rand.Rand, v verb, object, domain string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s for %s.", v.third, strings.ReplaceAll(object, "-", " "), strings.ReplaceAll(domain, "-", " "))
	for b.Len() < n {
		o, d, v := pick(r, objects), pick(r, domains), pick(r, verbs)
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, " Use when the user asks to %s %s or mentions %s.", v.base, o, d)
		case 1:
			fmt.Fprintf(&b, " Also %s %s and %s.", strings.ToLower(v.third), o, pick(r, objects))
		case 2:
			fmt.Fprintf(&b, " Supports %s, %s and %s formats.", pick(r, formats), pick(r, formats), pick(r, formats))
		default:
			fmt.Fprintf(&b, " Not for %s %s (use a %s skill instead).", d, o, v.base)
		}
	}
	return strings.TrimSpace(b.String()[:min(b.Len(), n)])
}

// markdown writes about n bytes of headed paragraphs, lists and code blocks
// and returns the number written.
func markdown(w *bufio.Writer, r *rand.Rand, n int) int {
	done := 0
	put := func(s string) {
		m, _ := w.WriteString(s)
		done += m
	}
	sentence := func() string {
		words := make([]string, 6+r.IntN(14))
		for i := range words {
			switch r.IntN(7) {
			case 0:
				words[i] = pick(r, objects)
			case 1:
				words[i] = pick(r, verbs).base
			case 2:
				words[i] = pick(r, domains)
			default:
				words[i] = pick(r, glue)
			}
		}
		s := strings.Join(words, " ")
		return strings.ToUpper(s[:1]) + s[1:] + "."
	}
	for done < n {
		switch r.IntN(8) {
		case 0:
			put(fmt.Sprintf("\n## %s %s\n\n", pick(r, verbs).third, pick(r, objects)))
		case 1, 2:
			for i := range 2 + r.IntN(5) {
				put(fmt.Sprintf("%d. **%s**: %s\n", i+1, pick(r, objects), sentence()))
			}
		case 3:
			put("\n```python\n")
			for range 3 + r.IntN(9) {
				put(fmt.Sprintf("    %s_%s = %s(%q, limit=%d)\n", pick(r, verbs).base, strings.ReplaceAll(pick(r, objects), "-", "_"), pick(r, verbs).base, pick(r, formats), r.IntN(500)))
			}
			put("```\n\n")
		default:
			for range 2 + r.IntN(4) {
				put(sentence() + " ")
			}
			put("\n\n")
		}
	}
	return done
}

func wrap(s string, width int) string {
	var b strings.Builder
	col := 0
	for _, word := range strings.Fields(s) {
		if col > 0 && col+1+len(word) > width {
			b.WriteByte('\n')
			col = 0
		} else if col > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += len(word)
	}
	return b.String()
}

func pick[T any](r *rand.Rand, xs []T) T { return xs[r.IntN(len(xs))] }

type verb struct{ base, third string }

var verbs = []verb{
	{"analyze", "Analyzes"}, {"generate", "Generates"}, {"convert", "Converts"}, {"review", "Reviews"},
	{"deploy", "Deploys"}, {"migrate", "Migrates"}, {"summarize", "Summarizes"}, {"validate", "Validates"},
	{"extract", "Extracts"}, {"merge", "Merges"}, {"profile", "Profiles"}, {"debug", "Debugs"},
	{"visualize", "Visualizes"}, {"annotate", "Annotates"}, {"schedule", "Schedules"}, {"monitor", "Monitors"},
	{"refactor", "Refactors"}, {"translate", "Translates"}, {"index", "Indexes"}, {"audit", "Audits"},
}

var objects = strings.Fields(`spreadsheets pdf-forms slide-decks contracts invoices
	pull-requests unit-tests stack-traces log-files dashboards sql-queries schemas api-specs
	docker-images helm-charts terraform-plans certificates dns-records access-policies secrets
	customer-tickets meeting-notes emails calendars surveys budgets forecasts ledgers tax-returns
	protein-structures genomes microscopy-images clinical-trials chemical-reactions spectra
	time-series embeddings prompts model-checkpoints datasets notebooks feature-flags
	web-pages sitemaps screenshots animations color-palettes fonts icons videos podcasts
	firmware bytecode binaries packet-captures malware-samples threat-models fuzzing-harnesses`)

var domains = strings.Fields(`healthcare finance insurance retail logistics manufacturing
	agriculture energy telecom education government legal-services real-estate travel
	biology chemistry physics astronomy climate-science materials-science robotics
	frontend backend mobile embedded data-engineering machine-learning security devops
	marketing sales human-resources procurement customer-support product-design gaming
	blockchain accessibility localization journalism publishing sports music`)

var formats = strings.Fields(`csv parquet json yaml xlsx docx pptx pdf html svg png wav mp4 proto avro arrow hdf5 fasta vcf geojson toml ini`)

var glue = strings.Fields(`the a this each every when before after with without from into over
	use check read write ensure keep run call return open save first then next only never always
	file table column value input output result error default option version user team project
	step section example rule note limit size name path line list set map key is are must should
	can may not and or if unless because so that which where while for to of in on at by as`)
