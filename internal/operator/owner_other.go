//go:build !unix && !windows

package operator

import "io/fs"

// systemDir returns "", because there is no way to check who wrote a file on
// this system.
func systemDir() string { return "" }

func checkedFrom() string { return "" }

func unsafeReason(string, fs.FileInfo) string { return "owner unknown on this system" }

func repair(path string) string { return "remove " + path }

func topCheckedDir(dir string) string { return dir }
