//go:build !unix && !windows

package operator

import "io/fs"

// systemDir returns "": on this system, nobody can check who wrote a file.
func systemDir() string { return "" }

func checkedFrom() string { return "" }

func unsafeReason(string, fs.FileInfo) string { return "owner unknown on this system" }

func repair(path string) string { return "remove " + path }

func programsCheckedFrom(dir string) string { return dir }
