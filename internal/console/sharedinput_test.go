package console_test

import (
	"bufio"
	"io"
	"os"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
)

// The line after a command goes to the prompt, although the command still
// waits for it.
func TestSharedInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	in := console.NewSharedInput(r)
	command := bufio.NewReader(in.Command())
	io.WriteString(w, "for the command\n")
	if line, err := command.ReadString('\n'); line != "for the command\n" || err != nil {
		t.Errorf("command: %q, %v", line, err)
	}
	waiting := make(chan error)
	go func() {
		_, err := command.ReadByte()
		waiting <- err
	}()
	prompt := bufio.NewReader(in.Prompt())
	if err := <-waiting; err != io.EOF {
		t.Errorf("command, at the end: %v", err)
	}
	io.WriteString(w, "y\n")
	if line, err := prompt.ReadString('\n'); line != "y\n" || err != nil {
		t.Errorf("prompt: %q, %v", line, err)
	}
	w.Close()
	if _, err := prompt.ReadByte(); err != io.EOF {
		t.Errorf("prompt, at the end: %v", err)
	}
}
