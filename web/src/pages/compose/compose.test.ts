import { same, test } from "../../../test/units/check";
import { unified } from "../../shared/content/makediff";
import { apply } from "./applyfix";
import { changes } from "./changedfiles";
import { fields, splitTools, type FieldID, type Value } from "./fields";
import { faultOf, fileOf } from "./files";
import { findFrontmatter, otherFields, read, valueOf } from "./frontmatter";
import { setField } from "./frontmatteredit";
import { adviceOn } from "./nameadvice";
import { suggestions } from "./versionhints";

const text = `---
# who
name: tides # short
license: MIT
description: >-
  Reads tide tables and
  says when.
version: 1.10
tags: [a, "b"]   # two
x-odd:
  - 1   # keep
metadata:
    author: ada   # ok
    short: "1"
---

# Body
---
name: no
`;

/** For each case: a field, its new value, and the text that is replaced. */
const cases: [FieldID, Value, string, string][] = [
  ["name", "moon", "name: tides #", "name: moon #"],
  ["version", "1.11", "version: 1.10", 'version: "1.11"'],
  ["tags", ["a", "c"], '[a, "b"]', "[a, c]"],
  ["tags", [], 'tags: [a, "b"]   # two\n', ""],
  ["description", "Short.", "  Reads tide tables and\n  says when.", "  Short."],
  ["displayName", "Tides: all", '    short: "1"\n', '    short: "1"\n    displayName: "Tides: all"\n'],
  [
    "allowedTools",
    ["Bash(git add:*)", "Read"],
    "license: MIT\n",
    "license: MIT\nallowed-tools: Bash(git add:*) Read\n",
  ],
  ["userInvocable", false, "license: MIT\n", "license: MIT\nuser-invocable: false\n"],
  ["preload", true, '    short: "1"\n', '    short: "1"\n    preload: "true"\n'],
  ["author", "", "    author: ada   # ok\n", ""],
  ["config", "a: 1 # x\nb:\n  - c", "license: MIT\n", "license: MIT\nconfig:\n  a: 1 # x\n  b:\n    - c\n"],
  ["license", "a --- b", "license: MIT", 'license: "a -\\u002d- b"'],
];

test("compose: a form field changes only its own lines", async () => {
  const yaml = await import("yaml");
  for (const [id, value, old, now] of cases) same(setField(yaml, text, id, value), text.replace(old, now));
  const windows = "---\r\nname: a\r\ndescription: b\r\n---\r\nBody\r\n";
  same(
    setField(yaml, windows, "version", "1.0"),
    windows.replace("description: b\r\n", 'description: b\r\nmetadata:\r\n  version: "1.0"\r\n'),
  );
  same(setField(yaml, "# Hi\n", "name", "x"), "---\nname: x\n---\n\n# Hi\n");
  same(setField(yaml, "---\nname: a: b: c\n---\n", "name", "x"), "---\nname: a: b: c\n---\n");
});

test("compose: a field round-trips any value", async () => {
  const yaml = await import("yaml");
  const odd = [
    "a",
    "b: c",
    "x # y",
    "- z",
    "'q'",
    '"',
    "true",
    "1.0",
    "# h",
    "a --- b",
    "你好:世界",
    "{",
    "[x]",
    "*p",
    "&q",
    "!t",
    "%",
    "@",
    "`",
    "|",
    ">",
    "null",
    "~",
    "",
    "é",
  ];
  const texts = [
    text,
    "---\nname: a\nmetadata:\n  # c\n  x: 1\n\n# end\n---\nB",
    "---\n{name: a, description: b}\n---\n",
    "---\nname: a\nmetadata:\n---\n",
    "no",
    "---\nname: a\nmetadata: text\n---\nx",
    "---\ndescription: 'a\n  b'\nname: x\n---\n",
  ];
  for (const before of texts) {
    for (const [id, { kind }] of Object.entries(fields) as [FieldID, (typeof fields)[FieldID]][]) {
      if (kind !== "line" && kind !== "text") continue;
      for (const value of odd) {
        const now = read(yaml, setField(yaml, before, id, value));
        same("front" in now && valueOf(yaml, now.front, id), value);
      }
    }
  }
});

test("compose: fields are parsed as on the hub", async () => {
  const yaml = await import("yaml");
  same(findFrontmatter("\ufeff\n---\na: 1\n---\n"), { start: 6, end: 11 });
  same([findFrontmatter("# no"), findFrontmatter("---\nname: a\n")], ["none", "unclosed"]);
  const now = read(yaml, text);
  if (!("front" in now)) throw new Error("it was not read");
  same(otherFields(yaml, now.front), ["x-odd"]);
  same([valueOf(yaml, now.front, "version"), valueOf(yaml, now.front, "userInvocable")], ["1.10", true]);
  same(splitTools("Read, Bash(git add:*, git commit:*) Grep"), ["Read", "Bash(git add:*, git commit:*)", "Grep"]);
});

test("compose: a fix from the hub is applied at its position", () =>
  same(apply("a\nbé😀d\nc\n", { startLine: 2, startColumn: 4, endLine: 3, endColumn: 1, text: "X" }), "a\nbé😀Xc\n"));

test("compose: changes are shown by line, and versions are suggested from them", () => {
  same(unified("a\nb\nc\n", "a\nc\nd\n"), "@@ -1,3 +1,3 @@\n a\n-b\n c\n+d\n");
  same(
    changes(
      [
        { path: "SKILL.md", text: "a" },
        { path: "x", base64: "AA==" },
      ],
      [{ path: "SKILL.md", text: "b" }],
    ).map((c) => [c.path, c.how]),
    [
      ["SKILL.md", "changed"],
      ["x", "removed"],
    ],
  );
  same(suggestions("1.2.3", [{ path: "SKILL.md", how: "changed" }]), ["1.2.4", "1.3.0", "2.0.0"]);
  same(suggestions("spring", []), []);
});

test("compose: files and paths", () => {
  same(fileOf("a", new Uint8Array([0, 255])), { path: "a", base64: "AP8=" });
  same(fileOf("a", new TextEncoder().encode("hé")), { path: "a", text: "hé" });
  same(
    ["", "a//b", "../a", "A.md", "a.md/b", "ok.md"].map((p) => faultOf(p, [{ path: "a.md", text: "" }])),
    ["empty", "shape", "shape", "taken", "through", undefined],
  );
});

test("compose: reports the words of a request missing from a draft", () =>
  same(adviceOn("please summarise the tide tables of Brest", "tides Reads tide tables.", "brest-tides summarises"), {
    missing: ["summarise", "brest"],
    elsewhere: ["summarise", "brest"],
  }));
