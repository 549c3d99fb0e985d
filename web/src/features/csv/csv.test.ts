import { same, test } from "../../../test/units/check";
import { parseCSV, writeCSV } from "./csv";
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
    users.map((u) => [u.line, u.name, u.groups.join(), u.role, u.errors.length]),
    [
      [2, "bob", "g1,g2", "developer", 0],
      [3, "ada", "", "reporter", 1],
      [4, "=cmd()", "", "reporter", 1],
      [5, "bob", "", "reporter", 3],
      [6, "eve", "", "reporter", 1],
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
  same(["", "email\na@b", "name,admin\nbob,true", "name,name\na,b", 'name\n"bob'].map(refused), [
    true,
    true,
    true,
    true,
    true,
  ]);
});

test("users from CSV: passwords are long and differ", () => {
  const some = new Set(Array.from({ length: 50 }, newPassword));
  same(some.size, 50);
  same(
    [...some].every((p) => /^[A-Za-z2-9]{20}$/.test(p)),
    true,
  );
});
