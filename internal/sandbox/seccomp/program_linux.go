package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// ruleSet maps the number of a system call to its rules. The first rule that
// applies decides; without one, the call is allowed. Each process that starts a
// sandbox compiles its rules, which takes a general compiler several milliseconds.
type ruleSet map[uintptr][]rule

// rule has an action for calls that pass all tests.
type rule struct {
	tests  []test
	action uint32
}

const allow = unix.SECCOMP_RET_ALLOW

// fail returns the action that makes a call fail with an error.
func fail(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// add adds a rule for a call.
func (s ruleSet) add(action uint32, nr uintptr, tests ...test) {
	s[nr] = append(s[nr], rule{tests, action})
}

// addAll adds an unconditional rule for each call.
func (s ruleSet) addAll(action uint32, calls []uintptr) {
	for _, nr := range calls {
		s.add(action, nr)
	}
}

// instruction is an instruction of a classic BPF program, as the kernel reads it.
type instruction = unix.SockFilter

// Instruction codes.
const (
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jump      = unix.BPF_JMP | unix.BPF_JA
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAbove = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K // or equal
	jumpSet   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	and       = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ret       = unix.BPF_RET | unix.BPF_K
)

// Offsets in struct seccomp_data on little-endian systems.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// failed is the jump target for the next rule. It is replaced when the length of
// the rule is known.
const failed = 0xff

// test is a test of an argument: instructions that jump to failed if the argument
// does not pass.
type test []instruction

// equals tests the low 32 bits of an argument. The kernel ignores the other bits
// unless the argument is an address or a size.
func equals(arg int, value uint32) test {
	return test{loadLow(arg), {Code: jumpEqual, Jf: failed, K: value}}
}

// anyFlag tests whether an argument has at least one of the flags.
func anyFlag(arg int, flags uint32) test {
	return test{loadLow(arg), {Code: jumpSet, Jf: failed, K: flags}}
}

// allFlags tests whether an argument has all of the flags.
func allFlags(arg int, flags uint32) test {
	return test{loadLow(arg), {Code: and, K: flags}, {Code: jumpEqual, Jf: failed, K: flags}}
}

// notZero tests all 64 bits of an argument.
func notZero(arg int) test {
	return test{loadLow(arg), {Code: jumpEqual, Jf: 2, K: 0}, loadHigh(arg), {Code: jumpEqual, Jt: failed, K: 0}}
}

func loadLow(arg int) instruction {
	return instruction{Code: load, K: uint32(atArgs + 8*arg)}
}

func loadHigh(arg int) instruction {
	return instruction{Code: load, K: uint32(atArgs + 8*arg + 4)}
}

// compile returns the program in the byte order of this machine.
func (s ruleSet) compile() ([]byte, error) {
	calls := slices.Sorted(maps.Keys(s))
	p := []instruction{
		{Code: load, K: atArch},
		{Code: jumpEqual, Jt: 1, K: arch},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: atNumber},
	}
	p = append(p, foreignCalls()...)
	rest, err := s.dispatch(calls)
	if err != nil {
		return nil, err
	}
	p = append(p, rest...)
	if len(p) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("seccomp program too long (%d instructions, limit %d)", len(p), unix.BPF_MAXINSNS)
	}
	var out []byte
	for _, i := range p {
		out = binary.NativeEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

// dispatch returns instructions that find the call among sorted ones by binary
// search, and apply its rules. The number of the call is loaded. The instructions
// end with a return in each branch.
func (s ruleSet) dispatch(calls []uintptr) ([]instruction, error) {
	const few = 3
	if len(calls) > few {
		middle := len(calls) / 2
		left, err := s.dispatch(calls[:middle])
		if err != nil {
			return nil, err
		}
		right, err := s.dispatch(calls[middle:])
		if err != nil {
			return nil, err
		}
		out := []instruction{{Code: jumpAbove, Jf: 1, K: uint32(calls[middle])}, {Code: jump, K: uint32(len(left))}}
		return append(append(out, left...), right...), nil
	}
	var out []instruction
	for _, nr := range calls {
		body, err := compileRules(s[nr])
		if err != nil {
			return nil, fmt.Errorf("system call %d: %w", nr, err)
		}
		out = append(out, instruction{Code: jumpEqual, Jf: uint8(len(body)), K: uint32(nr)})
		out = append(out, body...)
	}
	return append(out, instruction{Code: ret, K: allow}), nil
}

// compileRules returns instructions that apply the rules of a call. They are fewer
// than failed, so that a jump can skip them.
func compileRules(rules []rule) ([]instruction, error) {
	var out []instruction
	for _, r := range rules {
		begin := len(out)
		for _, t := range r.tests {
			out = append(out, t...)
		}
		out = append(out, instruction{Code: ret, K: r.action})
		for i := begin; i < len(out); i++ {
			next := len(out) - i - 1
			if next >= failed {
				return nil, fmt.Errorf("rule too long (%d instructions)", next)
			}
			if out[i].Jt == failed {
				out[i].Jt = uint8(next)
			}
			if out[i].Jf == failed {
				out[i].Jf = uint8(next)
			}
		}
		if len(r.tests) == 0 {
			break // later rules never apply
		}
	}
	if len(rules) > 0 && len(rules[len(rules)-1].tests) > 0 {
		out = append(out, instruction{Code: ret, K: allow})
	}
	if len(out) >= failed {
		return nil, fmt.Errorf("too many rules (%d instructions)", len(out))
	}
	return out, nil
}
