// Command build performs the steps of a release for which .ci/release has no
// other tool:
//
//	build archive FILE DIR DATE      write DIR to a .tar.gz or .zip file
//	build manifests [flags] DIR      describe the archives in DIR for package managers
//	build pagesbom LOCKFILE TAG FILE list the npm packages of the web page
//	build containerfile FILE         parse a Containerfile
//
// The same arguments and input files produce identical output. DATE is in Unix
// seconds.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("missing command; see the package comment")
	}
	switch cmd, args := args[0], args[1:]; {
	case cmd == "archive" && len(args) == 3:
		date, err := parseDate(args[2])
		if err != nil {
			return err
		}
		return writeArchive(args[0], args[1], date)
	case cmd == "manifests":
		return runManifests(args)
	case cmd == "pagesbom" && len(args) == 3:
		return writePageSBOM(args[0], args[1], args[2])
	case cmd == "containerfile" && len(args) == 1:
		return checkContainerfile(args[0])
	}
	return fmt.Errorf("unknown command or wrong number of arguments: %q", args)
}

func parseDate(seconds string) (time.Time, error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}, fmt.Errorf("invalid date %q: want Unix seconds", seconds)
	}
	return time.Unix(n, 0).UTC(), nil
}

func runManifests(args []string) error {
	var m manifests
	var date string
	f := flag.NewFlagSet("manifests", flag.ContinueOnError)
	f.StringVar(&m.Tag, "tag", "", "the tag, such as v1.2.0")
	f.StringVar(&m.Commit, "commit", "", "the commit of the tag")
	f.StringVar(&date, "date", "", "when the commit was made, in Unix seconds")
	f.StringVar(&m.BaseURL, "url", "", "the URL of the directory where the files are published")
	f.StringVar(&m.Index, "index", "", "the index of earlier releases")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return fmt.Errorf("manifests: want one directory, got %q", f.Args())
	}
	var err error
	if m.Date, err = parseDate(date); err != nil {
		return err
	}
	return m.write(f.Arg(0))
}
