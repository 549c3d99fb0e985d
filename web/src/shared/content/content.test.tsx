import { useState } from "preact/hooks";
import { holds, same, test, until } from "../../../test/units/check";
import { choose } from "../ui/theme";
import { Code } from "./code";
import { Diff } from "./diff";
import { endsFile, hunks, wholeFileHunk, expandHunks, changedPart } from "./difflines";
import { Editor } from "./editor";
import { SchemaForm } from "./form";
import { drawn } from "./markdown.test";
import { Mermaid, renderMermaid } from "./mermaid";
import { defaults, problems, Unread } from "./schema";

test("code: shows invisible characters, and marks below their lines", () =>
  drawn(<Code text={"a\u202eb\nc\nd"} numbers marks={[{ line: 2, level: "bad", say: "no" }]} />, (box) => {
    same(box.querySelector(".content-invisible")?.textContent, "U+202E");
    same(
      [...box.querySelectorAll("pre")].map((p) => p.textContent),
      ["aU+202Eb\nc\n", "d\n"],
    );
    same(box.querySelector("pre + .content-mark")?.textContent, "no");
  }));

test("code: hostile code is shown as text", () =>
  drawn(
    <Code text={'<img src=x onerror=alert(1)>\n"</span><script>alert(1)</script>"'} language="javascript" />,
    async (box) => {
      await until(() => box.querySelector(".c-string"), "colours");
      holds(!box.querySelector("img, script"), "markup came through");
      same(
        box.querySelector("code")?.textContent,
        '<img src=x onerror=alert(1)>\n"</span><script>alert(1)</script>"\n',
      );
    },
  ));

test("code: the front matter of Markdown is YAML, and no heading", () =>
  drawn(
    <Code text={"---\nname: tides\nversion: 1.0\n---\n\nTides\n---\n\nRead.\n"} path="tides/SKILL.md" />,
    async (box) => {
      await until(() => box.querySelector(".c-strong"), "colours");
      const line = (n: number) => box.querySelector(`[data-line="${n}"]`)!;
      same(line(2).querySelector(".c-name")?.textContent, "name:");
      same(line(3).querySelector(".c-strong"), null);
      same(line(6).querySelector(".c-strong")?.textContent, "Tides");
      same(box.querySelectorAll(".line").length, 9);
    },
  ));

const change =
  "--- a\n+++ b\n@@ -1,3 +1,4 @@\n a\n-b one\n+b two\n+c\n d\n@@ -10 +11 @@ f\n-x\n+y\n\\ No newline at end of file\n";

test("diff: parses the line numbers of both sides", () => {
  const all = hunks(change);
  same(
    all.map((h) => h.rows.map((r) => [r.kind[0], r.old ?? 0, r.new ?? 0, r.text])),
    [
      [
        ["s", 1, 1, "a"],
        ["r", 2, 0, "b one"],
        ["a", 0, 2, "b two"],
        ["a", 0, 3, "c"],
        ["s", 3, 4, "d"],
      ],
      [
        ["r", 10, 0, "x"],
        ["a", 0, 11, "y"],
      ],
    ],
  );
  same([all[1]?.skipped, all[1]?.about, all[1]?.rows[1]?.noEnd], [6, "f", true]);
  same(changedPart("a b c", "a x c"), { from: 2, oldTo: 3, newTo: 3 });
  same(changedPart("abc", "xyz"), undefined);
});

test("diff: more lines join the hunks that they connect", () => {
  const diff = "--- a\n+++ b\n@@ -3,1 +3,2 @@\n c\n+new\n@@ -8,1 +9,1 @@\n-h\n+H\n";
  const lines = ["a", "b", "c", "new", "d", "e", "f", "g", "H", "i"];
  const at = (ranges: [number, number][]) => {
    const { hunks: all, rest } = expandHunks(hunks(diff), lines, ranges);
    return [all.map((h) => [h.skipped, h.rows.map((r) => `${r.old ?? ""}/${r.new ?? ""}${r.text}`).join(" ")]), rest];
  };
  same(at([]), [
    [
      [2, "3/3c /4new"],
      [4, "8/h /9H"],
    ],
    1,
  ]);
  same(at([[5, 6]]), [
    [
      [2, "3/3c /4new 4/5d 5/6e"],
      [2, "8/h /9H"],
    ],
    1,
  ]);
  same(at([[1, 99]]), [[[0, "1/1a 2/2b 3/3c /4new 4/5d 5/6e 6/7f 7/8g 8/h /9H 9/10i"]], 0]);
  same(
    wholeFileHunk("a\r\nb\n")[0]?.rows.map((r) => r.text),
    ["a", "b"],
  );
});

test("diff: one line number is reached by Tab, the others by arrow keys", () =>
  drawn(
    <Diff
      text={"a\nb\nc\n"}
      path="a.txt"
      tools={{ press: () => {}, label: (_, n) => `on ${n}`, below: (_, n) => n === 2 && <i>here</i>, rest: () => null }}
    />,
    async (box) => {
      await until(() => box.querySelector('.line-press[tabindex="0"]'), "a line number in the tab order");
      const all = [...box.querySelectorAll<HTMLElement>(".line-press")];
      same(
        all.map((b) => [b.getAttribute("aria-label"), b.tabIndex]),
        [
          ["on 1", 0],
          ["on 2", -1],
          ["on 3", -1],
        ],
      );
      all[0]!.focus();
      all[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      same(document.activeElement, all[1]);
      same(
        all.map((b) => b.tabIndex),
        [-1, 0, -1],
      );
      same(box.querySelector("i")?.textContent, "here");
    },
  ));

test("diff: renders signs and words", () =>
  drawn(<Diff diff={change} path="a.md" marks={[{ line: 3, level: "warn", say: "look" }]} />, (box) => {
    same(
      [...box.querySelectorAll("tr.added .sign")].map((s) => s.textContent),
      ["+", "+", "+"],
    );
    same([box.querySelector("del")?.textContent, box.querySelector("ins")?.textContent], ["one", "two"]);
    same(box.querySelector("tr.marks")?.previousElementSibling?.querySelectorAll("td")[1]?.textContent, "3");
  }));

test("mermaid: renders without HTML, in the colours of the page", async () => {
  const light = await renderMermaid("flowchart LR\n  A[<b>x</b>] --> B");
  holds(
    "svg" in light && light.svg.includes("<text") && !/foreignObject/i.test(light.svg),
    JSON.stringify(light).slice(0, 200),
  );
  choose("dark");
  const dark = await renderMermaid("flowchart LR\n  A[<b>x</b>] --> B");
  choose("light");
  holds(
    "svg" in dark && "svg" in light && dark.svg !== light.svg && dark.svg.includes("#173532"),
    "the dark is not dark",
  );
});

const attacks = [
  'flowchart LR\n  A["<img src=x onerror=alert(1)>"] --> B["<script>alert(1)</script>"]',
  'flowchart LR\n  A --> B\n  click A href "javascript:alert(1)"',
  "flowchart LR\n  A --> B\n  click A call alert(1)",
  'flowchart LR\n  A@{ img: "https://evil.example/x.png", label: "x" }',
  '%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "* { background: url(https://evil.example/a) }"}}%%\nflowchart LR\n  A["<iframe src=https://evil.example></iframe>"] --> B',
  "---\nconfig:\n  securityLevel: loose\n  themeCSS: '@import url(https://evil.example/a.css);'\n  fontFamily: 'x; } * { background: url(https://evil.example/b)'\n---\nflowchart LR\n  A --> B",
  "flowchart LR\n  A --> B\n  classDef x fill:url(https://evil.example/c)\n  class A x\n  style B fill:url('https://evil.example/d'),background:url(//evil.example/e)",
  "sequenceDiagram\n  participant A\n  link A: x @ javascript:alert(1)\n  A->>A: <svg onload=alert(1)>",
  "eventmodeling\n  tf 01 ui A { <img src=x onerror=alert(1)><img src=https://evil.example/f> }",
  'architecture-beta\n  service a(cloud)["<img src=x onerror=alert(1)>"]',
];

test("mermaid: renders the icons of an architecture diagram", async () => {
  const drawing = await renderMermaid("architecture-beta\n  service a(cloud)[Hub]");
  holds("svg" in drawing && (drawing.svg.match(/<path/g) ?? []).length > 0, JSON.stringify(drawing).slice(0, 300));
});

attacks.forEach((source, i) =>
  test(`mermaid: attack ${i + 1} renders nothing that runs or loads`, async () => {
    const drawing = await renderMermaid(source);
    if (!("svg" in drawing)) return;
    const svg = new DOMParser().parseFromString(drawing.svg, "image/svg+xml");
    holds(
      !svg.querySelector("parsererror, script, foreignObject, iframe, image, img, use[href^=http]"),
      drawing.svg.slice(0, 300),
    );
    for (const e of svg.querySelectorAll("*"))
      for (const a of e.attributes)
        holds(
          !a.name.startsWith("on") && !/javascript:|url\(\s*["']?(?!["']?#)/i.test(a.value),
          `<${e.localName} ${a.name}="${a.value}">`,
        );
    for (const s of svg.querySelectorAll("style"))
      holds(
        !/@import|evil\.example/.test(s.textContent ?? ""),
        `the style has ${/.{0,40}evil.{0,40}/.exec(s.textContent ?? "")?.[0]}`,
      );
  }),
);

test("mermaid: an error is reported at its position in the source", async () => {
  const at = async (source: string) => {
    const d = await renderMermaid(source);
    return "svg" in d ? "drawn" : [d.line, d.column];
  };
  same(await at("flowchart LR\n  A --> B\n  %% a comment\n\n  %% two\n  B -> -> C"), [6, 5]);
  same(await at("---\ntitle: x\n---\nflowchart LR\n  A --> B\n  B -> -> C"), [6, 5]);
  same(await at("gitGraph\n  commit\n  brnch dev"), [3, 3]);
  same(await at("hello"), [null, null]);
  same(await at("x".repeat(60_000)), [null, null]);
});

test("mermaid: the view zooms, shows its source, and renders again in dark mode", () =>
  drawn(<Mermaid source={"flowchart LR\n  A --> B"} />, async (box) => {
    const sheet = await until(() => box.querySelector<HTMLElement>(".sheet"), "the drawing");
    const svg = () => box.querySelector(".drawing")?.shadowRoot?.querySelector("svg");
    holds(svg()?.getAttribute("role") === "img" && svg()?.getAttribute("aria-label"), "the drawing has no name");
    const width = sheet.offsetWidth;
    box.querySelector(".canvas")?.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    await until(() => sheet.offsetWidth > width, "the zoom");
    const before = svg();
    choose("dark");
    await until(() => svg() !== before, "the dark drawing");
    choose("light");
    box.querySelector<HTMLElement>("[aria-pressed]")?.click();
    await until(() => box.querySelector(".source code"), "the source");
  }));

test("editor: keeps the value of the plain field, and reports input", () => {
  let said = "";
  let fixed = false;
  const finding = {
    code: "x",
    line: 2,
    column: 1,
    message: "wrong",
    fix: "Mend it",
    severity: "error",
    apply: () => void (fixed = true),
  };
  return drawn(
    <Editor
      label="Text"
      value={"---\nname: a\n---\n# b"}
      onChange={(v) => (said = v)}
      language="markdown"
      diagnostics={[finding]}
    />,
    async (box) => {
      const content = await until(() => box.querySelector<HTMLElement>(".cm-content"), "the editor");
      same(content.getAttribute("aria-label"), "Text");
      content.focus();
      document.execCommand("insertText", false, "x");
      await until(() => said.startsWith("x---"), "what was typed");
      [...box.querySelectorAll("button")].find((b) => b.textContent === "Mend it")?.click();
      holds(fixed, "the fix was not applied");
      await until(() => box.querySelector(".cm-lintRange-error"), "the underline");
    },
  );
});

test("editor: no input is lost when the value arrives late", () => {
  const Late = () => {
    const [value, set] = useState("");
    return <Editor label="Late" value={value} onChange={(v) => setTimeout(() => set(v), 30)} language="text" />;
  };
  return drawn(<Late />, async (box) => {
    const content = await until(() => box.querySelector<HTMLElement>(".cm-content"), "the editor");
    content.focus();
    for (const letter of "abcdefghij") {
      document.execCommand("insertText", false, letter);
      await new Promise((r) => setTimeout(r, 12));
    }
    await new Promise((r) => setTimeout(r, 100));
    same(content.textContent, "abcdefghij");
  });
});

const schema = {
  type: "object",
  required: ["name", "count", "colour", "address", "sure"],
  properties: {
    name: { type: "string", minLength: 2 },
    mail: { type: "string", format: "email" },
    day: { type: "string", format: "date" },
    count: { type: "integer", minimum: 1, maximum: 3, default: 2 },
    sure: { type: "boolean" },
    colour: { enum: ["r", "g"], enumNames: ["Red", "Green"] },
    size: { oneOf: [{ const: 1, title: "One" }] },
    tools: { type: "array", minItems: 1, items: { enum: ["a", "b"] } },
    tags: { type: "array", items: { type: "string", maxLength: 3 } },
    address: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
    free: { type: ["object", "null"] },
    evil: { type: "string", pattern: "^(a+)+$" },
  },
};

test("form: errors are shown at their fields", () => {
  const where = (value: Record<string, unknown>) => Object.keys(problems(schema, value)).join();
  same(defaults(schema), { count: 2, sure: false, address: {} });
  same(where({}), "name,count,sure,colour,address.city");
  const good = { name: "ada", count: 2, sure: true, colour: "r", address: { city: "x" } };
  same(where(good), "");
  same(where({ ...good, name: "a", count: 1.5, colour: "b", address: {} }), "name,count,colour,address.city");
  same(
    where({ ...good, mail: "x", day: "2026-02-30", tools: ["c"], tags: ["long"], size: 2, free: [] }),
    "mail,day,size,tools,tags,free",
  );
  same(where({ ...good, free: null, size: 1, tools: ["a"], day: "2026-02-28", mail: "ada@example.org" }), "");
  same(where({ ...good, free: new Unread("{", "it ends too soon") }), "free");
  same(where({ ...good, evil: "a".repeat(40) + "!" }), ""); // does not end if the pattern is run
});

test("form: fields write their values", () => {
  let value: Record<string, unknown> = { count: 2 };
  const Form = () => {
    const [v, set] = useState(value);
    value = v;
    return <SchemaForm schema={schema} value={v} onChange={set} />;
  };
  return drawn(<Form />, async (box) => {
    await until(() => value.sure === false, "the required yes or no");
    const field = (label: string) => [...box.querySelectorAll("label")].find((l) => l.textContent?.startsWith(label))!;
    const change = async (act: () => void) => {
      const before = value;
      act();
      await until(() => value !== before, "the value");
    };
    const type = (label: string, text: string) =>
      change(() => {
        const input = document.getElementById(field(label).htmlFor) as HTMLInputElement;
        input.value = text;
        input.dispatchEvent(new InputEvent("input", { bubbles: true }));
      });
    await type("count", "3");
    await type("name", "ada");
    await type("mail", "x");
    await type("mail", "");
    await change(() => field("Green").querySelector("input")?.click());
    await change(() => field("b").querySelector("input")?.click());
    await type("city", "Paris");
    same(value, { count: 3, sure: false, name: "ada", colour: "g", tools: ["b"], address: { city: "Paris" } });
  });
});

test("diff: the end of a file is known if fewer unchanged lines follow its last change than a diff shows", () => {
  const ends = (diff: string) => endsFile(hunks(diff));
  same(ends("@@ -0,0 +1,2 @@\n+a\n+b\n"), true, "an added file");
  same(ends("@@ -1,2 +0,0 @@\n-a\n-b\n"), true, "a removed file");
  same(ends("@@ -1,3 +1,3 @@\n-a\n+b\n c\n d\n"), true, "two lines follow");
  same(ends("@@ -1,4 +1,4 @@\n-a\n+b\n c\n d\n e\n"), false, "more may follow");
  same(ends("@@ -1,9 +1,9 @@\n-a\n+b\n"), false, "a diff that was cut");
});
