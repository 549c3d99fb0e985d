//go:build linux

// Command payload is the program that sandboxtest runs inside sandboxes. It has
// a subcommand for each attack, some tools for tests, and a victim that
// represents the hub on the host. All its actions are bounded, and it gives an
// attacker no new abilities.
//
//	payload COMMAND MARK [ARGUMENT...]
//
// The host finds the process by MARK. An attack first prints "ready". Its last
// line is "BREACH" or "BLOCKED" with details, as far as the attack can tell.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// maxLifetime is the maximum lifetime of a payload process, as in package
// sandboxtest.
const maxLifetime = 20 * time.Second

// isBounded reports whether maxLifetime applies. It is false for the victim, which runs
// until its input ends.
var isBounded = true

func main() {
	if os.Geteuid() != os.Getuid() { // the setuid copy for attack D07 does nothing else
		fmt.Println("euid", os.Geteuid())
		return
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: payload COMMAND MARK [ARGUMENT...]")
		os.Exit(2)
	}
	time.AfterFunc(maxLifetime, func() {
		if isBounded {
			os.Exit(3)
		}
	})
	debug.SetGCPercent(-1) // forks require a process with a single thread
	name, args := os.Args[1], os.Args[3:]
	if run := tools[name]; run != nil {
		run(args)
		return
	}
	run := attacks[name]
	if run == nil {
		fmt.Fprintf(os.Stderr, "payload: no command %q\n", name)
		os.Exit(2)
	}
	fmt.Println("ready")
	t := &tally{mark: os.Args[2], args: args}
	run(t)
	t.end()
}

var attacks = map[string]func(*tally){
	"A01": readAny, "A02": readAny, "A03": readAny, "A04": readEnv, "A05": readEnviron, "A06": listProcesses, "A07": climb, "A08": readFDs, "A09": readKernelLog, "A10": searchKeyring,
	"B01": appendTo, "B02": changeSkill, "B03": appendTo, "B04": plantSymlink, "B05": plantHardLink, "B07": plantSetuid, "B08": makeDevice, "B09": plantFIFO,
	"C01": dial, "C02": dial, "C03": sendUDP, "C04": dial, "C05": dial, "C06": dial, "C07": oddSockets, "C08": vsock, "C09": ioURing, "C11": listen,
	"D01": signalVictim, "D02": signalAll, "D03": trace, "D04": readMemory, "D05": stealFD, "D06": limitVictim, "D07": gainRoot, "D08": mountTmpfs, "D09": newUserNamespace,
	"D10": changeRoot, "D11": kernelSurface, "D12": injectInput, "D13": openTTY, "D14": enterNamespace, "D15": reniceVictim, "D16": pinVictim, "D17": foreignABI, "D18": writeProc,
	"E01": loop, "E02": ignoreTerm, "E03": forkBomb, "E04": allocateInOneProcess, "E05": allocateInFourProcesses, "E06": bigFile, "E07": manyFiles, "E08": inodes, "E09": fillShm, "E10": flood,
	"E11": daemon, "E12": holdStdout, "E13": openMany, "E14": spinTwo, "E15": threads, "E16": memfd, "E17": nestDirs,
	"A08+": inheritedFDs, "D06+": limitFirst, "B04+": replaceOut, "B05+": swapLinks, "E16+": memfds,
	"M01": takeMemory, "M02": takeMemory, "M03": takeMemory, "M04": takeMemory, "M05": takeMemory, "M06": takeMemory, "M07": takeMemory, "M08": takeMemory, "M09": takeMemory, "M10": takeMemory, "M11": takeMemory, "M12": takeMemory, "M13": takeMemory,
	"D11+": selectPersonality,
}

// tally counts an attack's attempts and records their results.
type tally struct {
	mark     string
	args     []string
	got, not []string
}

// try records an attempted action. If err is nil, the action succeeded and
// counts as a breach.
func (t *tally) try(what string, err error) {
	if err == nil {
		t.got = append(t.got, what)
		return
	}
	t.not = append(t.not, what+": "+err.Error())
}

func (t *tally) end() {
	if len(t.got) > 0 {
		fmt.Println("BREACH", oneLine(t.got))
		return
	}
	fmt.Println("BLOCKED", oneLine(t.not))
}

func oneLine(all []string) string {
	s := strings.ReplaceAll(strings.Join(all, "; "), "\n", " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}

func workDir() string { return os.Getenv("LOADOUT_WORK") }

func outDir() string {
	dir := os.Getenv("LOADOUT_OUT")
	os.MkdirAll(dir, 0o755)
	return dir
}
