import { same, test } from "../../../test/units/check";
import { parseCSV, readText, writeCSV } from "./csv";
import { newPassword, readUsers } from "./newusers";

const known = {
  users: new Set(["ada"]),
  groups: new Map([
    ["sea", "g1"],
    ["air", "g2"],
  ]),
};

test("csv: quotes, line breaks, separators and byte order marks are read", () => {
  same(
    parseCSV('\ufeffname;note\r\n"a;b";"say ""hi""\nthere"\r\n\r\nc;d').map((r) => [r.line, ...r.cells]),
    [
      [1, "name", "note"],
      [2, "a;b", 'say "hi"\nthere'],
      [5, "c", "d"],
    ],
  );
  same(
    parseCSV("a\tb\r1\t2").map((r) => r.cells.join("|")),
    ["a|b", "1|2"],
  );
});

test("csv: what is written is read again, and no cell is a formula", () => {
  const rows = [["=1+1", '+a,"b"', "-x", "@y", "plain", "a\nb"]];
  const text = writeCSV(rows);
  same(text.includes("\n=") || text.startsWith("="), false);
  same(parseCSV(text)[0]!.cells, ["'=1+1", `'+a,"b"`, "'-x", "'@y", "plain", "a\nb"]);
});

test("users from CSV: each line has its errors, and formulas are only text", () => {
  const users = readUsers(
    "Name,email,groups,role\nbob,bob@example.com,sea;air,developer\nada,,,\n=cmd(),,,\nbob,,nowhere,king\neve,no mail,,\n",
    known,
  );
  same(
    users.map((u) => [u.line, u.name, u.groups.map((g) => `${g.id} ${g.role}`).join(), u.errors.length]),
    [
      [2, "bob", "g1 developer,g2 developer", 0],
      [3, "ada", "", 1],
      [4, "=cmd()", "", 1],
      [5, "bob", "", 3],
      [6, "eve", "", 1],
    ],
  );
});

test("users from CSV: files that are too large or have other columns are refused", () => {
  const refused = (text: string) => {
    try {
      readUsers(text, known);
      return false;
    } catch {
      return true;
    }
  };
  const many = (n: number) => "name\n" + Array.from({ length: n }, (_, i) => `u${i}\n`).join("");
  same([refused(many(1000)), refused(many(1001))], [false, true]);
  same(refused("name\n" + "x".repeat(1 << 20)), true);
  same(["", "email\na@b", "name,salary\nbob,1", "name,name\na,b", 'name\n"bob'].map(refused), [
    true,
    true,
    true,
    true,
    true,
  ]);
});

test("users from CSV: an export is read, with a role for each group, and nothing is added to its texts", () => {
  const text = writeCSV([
    ["name", "display", "email", "groups", "admin", "disabled", "created", "seen"],
    ["ada", "Ada", "ada@example.com", "sea:owner", true, true, "2026-01-01", undefined],
    ["bob", "-x", "", "sea:owner;air:reporter", false, false, "2026-01-01", "2026-01-02"],
    ["eve", "Eve", "", "sea:king;lake:owner", true, true, "", ""],
  ]);
  const users = readUsers(text, known);
  same(
    users.map((u) => [u.name, u.display, u.groups.map((g) => `${g.id} ${g.role}`).join(), u.errors.length]),
    [
      ["ada", "Ada", "g1 owner", 1], // only because it exists
      ["bob", "-x", "g1 owner,g2 reporter", 0],
      ["eve", "Eve", "", 4], // an administrator, disabled, with an unknown role and an unknown group
    ],
  );
});

test("users from CSV: a file of a Chinese Excel is read in its encoding, which is said", () => {
  const gbk = new Uint8Array([0x6e, 0x61, 0x6d, 0x65, 0x0a, 0xd5, 0xc5, 0xc8, 0xfd]); // name, line break, 张三
  same(readText(gbk.buffer), { text: "name\n张三", guessed: true });
  same(readText(new TextEncoder().encode("name\n张三").buffer as ArrayBuffer), { text: "name\n张三", guessed: false });
  const wide = new Uint8Array([0xff, 0xfe, 0x20, 0x5f]);
  same(readText(wide.buffer), { text: "张", guessed: false });
  same(writeCSV([["张三"]]).startsWith("\ufeff"), true);
});

test("users from CSV: passwords are long and differ", () => {
  const some = new Set(Array.from({ length: 50 }, newPassword));
  same(some.size, 50);
  same(
    [...some].every((p) => /^[A-Za-z2-9]{20}$/.test(p)),
    true,
  );
});
