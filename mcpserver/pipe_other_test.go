//go:build !unix

package mcpserver_test

func makePipe(string) bool { return false }
