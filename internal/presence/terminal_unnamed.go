//go:build unix && !linux

package presence

func terminalName() string { return "" }
