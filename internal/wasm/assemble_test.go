package wasm_test

import (
	"encoding/binary"
	"slices"
)

// This file is a small assembler for code that the Go compiler does not
// generate.

func uleb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// sleb encodes a signed LEB128 number.
func sleb(n int64) (b []byte) {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func str(s string) []byte { return cat(uleb(uint64(len(s))), []byte(s)) }

func vec(elements ...[]byte) []byte { return cat(uleb(uint64(len(elements))), cat(elements...)) }

func section(id byte, body []byte) []byte { return cat([]byte{id}, uleb(uint64(len(body))), body) }

func i32(n int64) []byte { return cat([]byte{0x41}, sleb(n)) }

func call(f uint64) []byte { return cat([]byte{0x10}, uleb(f)) }

// Functions of an assembled module by their index.
const (
	procExit = iota
	fdRenumber
	pathOpen
	start
)

// text is at address 8 of the memory of an assembled module.
const text = "../secret.txt"

var (
	nop         []byte
	unreachable = []byte{0x00}
	forever     = []byte{0x03, 0x40, 0x0c, 0, 0x0b} // loop br 0 end
	recursion   = call(start)
)

func exit(code int64) []byte { return cat(i32(code), call(procExit)) }

// grow requests pages and exits with 9 if it does not get them.
func grow(pages int64) []byte {
	return cat(i32(pages), []byte{0x40, 0}, i32(-1), []byte{0x46, 0x04, 0x40}, exit(9), []byte{0x0b})
}

// escape exits with the error of opening text below the first mount.
var escape = cat(i32(3), i32(1), i32(8), i32(int64(len(text))), i32(0),
	[]byte{0x42}, sleb(2), []byte{0x42}, sleb(2), i32(0), i32(0), call(pathOpen), call(procExit))

// renumber exits with the error of making a file table of 2^31 entries.
var renumber = cat(i32(99), i32(0x7fffffff), call(fdRenumber), call(procExit))

// assemble is a WASI command whose _start is body, with sections put in front of its end.
func assemble(body []byte, extra ...[]byte) []byte {
	const i32t, i64t = 0x7f, 0x7e
	fn := func(results []byte, params ...byte) []byte {
		return cat([]byte{0x60}, uleb(uint64(len(params))), params, uleb(uint64(len(results))), results)
	}
	wasi := func(name string, typ byte) []byte {
		return cat(str("wasi_snapshot_preview1"), str(name), []byte{0, typ})
	}
	function := cat([]byte{0}, body, []byte{0x0b})
	return cat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec(fn(nil), fn(nil, i32t), fn([]byte{i32t}, i32t, i32t),
			fn([]byte{i32t}, i32t, i32t, i32t, i32t, i32t, i64t, i64t, i32t, i32t))),
		section(2, vec(wasi("proc_exit", 1), wasi("fd_renumber", 2), wasi("path_open", 3))),
		section(3, vec([]byte{0})),
		section(5, vec([]byte{0, 1})),
		section(7, vec(cat(str("_start"), []byte{0, start}), cat(str("memory"), []byte{2, 0}))),
		cat(extra...),
		section(10, vec(cat(uleb(uint64(len(function))), function))),
		section(11, vec(cat([]byte{0}, i32(8), []byte{0x0b}, str(text)))),
	)
}

// startSection makes _start run before the module is instantiated.
var startSection = section(8, []byte{start})

// bomb is a module of n functions with blocks conditional assignments each, which take a compiler long, and a _start.
func bomb(n, blocks int) []byte {
	const locals = 100
	code := cat(vec(cat(uleb(locals), []byte{0x7f})))
	for i := range blocks {
		a, b := uleb(uint64(i%locals)), uleb(uint64(i*7%locals))
		// block (br_if 0 (local.get a)) (local.set b (i32.add (local.get a) (local.get b))) end
		code = cat(code, []byte{0x02, 0x40, 0x20}, a, []byte{0x0d, 0, 0x20}, a, []byte{0x20}, b, []byte{0x6a, 0x21}, b, []byte{0x0b})
	}
	code = append(code, 0x0b)
	one := cat(uleb(uint64(len(code))), code)
	return cat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec([]byte{0x60, 0, 0})),
		section(3, vec(slices.Repeat([][]byte{{0}}, n)...)),
		section(7, vec(cat(str("_start"), []byte{0, 0}))),
		section(10, vec(slices.Repeat([][]byte{one}, n)...)),
	)
}
