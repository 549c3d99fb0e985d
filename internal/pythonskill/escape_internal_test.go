package pythonskill

import "testing"

func TestDecodeEscape(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		length   int
	}{
		{`\n and more`, "\n", 2}, {`\a`, "\a", 2}, {`\"`, `"`, 2}, {`\\n`, `\`, 2},
		{"\\\nx", "", 2}, {"\\\r\nx", "", 3}, {"\\\rx", "\\\r", 2}, {"\\\r", "\\\r", 2}, {"\\x\n", `\x`, 2},
		{`\0`, "\x00", 2}, {`\7`, "\a", 2}, {`\8`, `\8`, 2}, {`\18`, "\x01", 2}, {`\12`, "\n", 3}, {`\101`, "A", 4}, {`\1012`, "A", 4}, {`\777`, "ǿ", 4},
		{`\x41`, "A", 4}, {`\x411`, "A", 4}, {`\x4`, `\x`, 2}, {`\x4g`, `\x`, 2}, {`\u00e9`, "é", 6}, {`\u00e`, `\u`, 2},
		{`\U0001F600`, "😀", 10}, {`\U0010ffff`, "\U0010ffff", 10}, {`\U00110000`, `\U`, 2}, {`\q`, `\q`, 2}, {`\é`, "\\\xc3", 2},
	} {
		if got, n := decodeEscape(tt.in); got != tt.want || n != tt.length {
			t.Errorf("%q: %q with %d bytes, want %q with %d", tt.in, got, n, tt.want, tt.length)
		}
	}
}
