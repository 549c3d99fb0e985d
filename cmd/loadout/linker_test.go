package main

import (
	"bytes"
	"os"
	"testing"
)

// The linker drops methods that nothing calls, unless text/template can execute: it calls
// methods by name, so the linker keeps every exported method of the program. That costs 25
// MB. Look for the importer with go build -ldflags=-dumpdep; grpc and SetUsageTemplate of
// cobra are known ways.
func TestLinkerDropsUnusedMethods(t *testing.T) {
	exe, err := plainCommand()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte("main.run")) { // the table of functions is there
		t.Fatalf("no function names in %s", exe)
	}
	if bytes.Contains(program, []byte("text/template.(*state).evalField")) {
		t.Error("the program links the execution of templates")
	}
}
