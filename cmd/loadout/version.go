package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionOutput struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  loadout version --json",
		Args:    argCount(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := buildVersion()
	if a.JSON {
		return a.PrintJSON(v)
	}
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision + ")"
	}
	fmt.Fprintf(a.Stdout, "loadout %s%s, %s, %s\n", v.Version, revision, v.Go, v.Platform)
	return nil
}

func buildVersion() versionOutput {
	v := versionOutput{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		v.Version = bi.Main.Version
	}
	for _, s := range bi.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v.Revision = s.Value[:12]
		}
	}
	return v
}
