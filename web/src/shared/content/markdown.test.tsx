import { type ComponentChildren, render } from "preact";
import { holds, same, test, until } from "../../../test/units/check";
import { decodeHTMLStrict } from "./entities";
import { sameOriginURL, linkTarget } from "./links";
import { Markdown } from "./markdown";
import { parse, parseMore, type Parsed } from "./parse";
import { closeMarks } from "./repair";

/** drawn renders something into a box and removes it afterwards. */
export async function drawn(what: ComponentChildren, look: (box: HTMLElement) => void | Promise<void>) {
  const box = document.createElement("div");
  document.body.append(box);
  try {
    render(what, box);
    await look(box);
  } finally {
    render(null, box);
    box.remove();
  }
}

const ready = (box: HTMLElement) => until(() => box.querySelector(".content-md:not(.plain)"), "the text");

const hostile = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<a href='javascript:alert(1)'>x</a>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](vbscript:msgbox)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example/a)",
  "[x](/api/v1/logout)",
  "[x](\\\\evil.example\\a)",
  "[x](https://user:pass@evil.example)",
  "![x](https://evil.example/track.png)",
  "![x](data:image/svg+xml,<svg onload=alert(1)>)",
  "![x](//evil.example/a.png)",
  '![x" onerror="alert(1)](a.png)',
  '[x](a.md "t" onclick="alert(1))',
  '<https://evil.example/"onmouseover=alert(1)>',
  '```x" onclick="alert(1)\n</code></pre><script>alert(1)</script>\n```',
  "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
  "# <img src=x onerror=alert(1)>",
  "- [ ] <script>alert(1)</script>",
  "<style>*{display:none}</style>",
  "<form action=https://evil.example><input></form>",
].join("\n\n");

test("markdown: hostile input is rendered as text", () =>
  drawn(<Markdown text={hostile} file={() => "/"} />, async (box) => {
    await ready(box);
    const tags = new Set([...box.querySelectorAll("*")].map((e) => e.localName));
    for (const tag of ["script", "iframe", "style", "form", "object", "embed", "link", "meta", "base"])
      holds(!tags.has(tag), `there is <${tag}>`);
    for (const e of box.querySelectorAll("*"))
      for (const a of e.attributes)
        holds(
          !a.name.startsWith("on") && !/javascript:|vbscript:|data:/i.test(a.name === "title" ? "" : a.value),
          `<${e.localName} ${a.name}="${a.value}">`,
        );
    for (const image of box.querySelectorAll("img")) holds(image.src.startsWith(location.origin), image.src);
    for (const a of box.querySelectorAll("a")) {
      holds(/^(https?:|mailto:)/.test(a.href) && !a.href.includes("logout"), a.href);
      if (!a.href.startsWith(location.origin)) same([a.target, a.rel], ["_blank", "noopener noreferrer nofollow"]);
    }
  }));

test("markdown: an image that the hub serves as text becomes a link", () =>
  drawn(
    <Markdown text={"![one](a.png) ![two](b.svg)\n\n[![three](c.svg)](notes.md)"} file={(path) => `/api/v1/${path}`} />,
    async (box) => {
      await ready(box);
      same(
        [...box.querySelectorAll("img")].map((i) => i.alt),
        ["one"],
      );
      same(
        [...box.querySelectorAll("a")].map((a) => new URL(a.href).pathname),
        ["/api/v1/b.svg", "/api/v1/notes.md"],
      );
    },
  ));

test("markdown: links have only allowed targets", () => {
  same(linkTarget("https://example.org/a?b#c"), { to: "out", href: "https://example.org/a?b#c" });
  same(linkTarget("mailto:ada@example.org"), { to: "out", href: "mailto:ada@example.org" });
  same(linkTarget("./b.md#x", "docs"), { to: "file", path: "docs/b.md" });
  same(linkTarget("../b%20c.md", "docs/deep"), { to: "file", path: "docs/b c.md" });
  same(linkTarget("#a-place"), { to: "place", slug: "a-place" });
  for (const bad of [
    "javascript:alert(1)",
    " java\nscript:x",
    "data:text/html,x",
    "/etc",
    "//evil.example",
    "../../x",
    "..%2f..%2fapi",
    "a\\..\\b",
    "blob:https://x",
    "%",
    "",
    "#",
  ])
    same(linkTarget(bad, "docs"), undefined, bad);
  same(sameOriginURL("https://evil.example/a"), undefined);
  same(sameOriginURL("javascript:alert(1)"), undefined);
  same(sameOriginURL("/a"), location.origin + "/a");
});

test("markdown: heading levels are in order", () =>
  drawn(<Markdown level={3} text={"## a\n\n#### b\n\n# c\n\n> ##### d\n\n### e"} />, async (box) => {
    await ready(box);
    same(
      [...box.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((h) => h.localName + h.textContent),
      ["h3a", "h4b", "h3c", "h4d", "h4e"],
    );
  }));

test("markdown: tables, tasks, code", () =>
  drawn(
    <Markdown text={"| a | b |\n|--:|---|\n| 1 | `x` |\n\n- [x] done\n- [ ] open\n\n```python\nimport os\n```\n"} />,
    async (box) => {
      await ready(box);
      same(box.querySelectorAll("th[scope=col]").length, 2);
      same(box.querySelector("td")?.className, "right");
      same(
        [...box.querySelectorAll<HTMLInputElement>("li.task input")].map((i) => i.checked),
        [true, false],
      );
      await until(() => box.querySelector("pre .c-keyword")?.textContent === "import", "colours");
      same(box.querySelector(".content-code .head span")?.textContent, "Python");
    },
  ));

const long =
  "# Title\n\nA *text* with `code` and a [link](https://example.org).\n\n- one\n- two\n\n```js\nlet a = 1;\n\nlet b = 2;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n> more\n\nHeading\n-------\n\nEnd\n# Not\n\n1. x\n\n   y\n";

test("markdown: incremental parsing gives the same result", () => {
  const kinds = (p: Parsed) => p.blocks.map((b) => [b.text, b.tokens.map((t) => t.type + t.content).join()]);
  let parsed: Parsed | undefined;
  for (let n = 1; n <= long.length; n++) {
    const before: Parsed | undefined = parsed;
    parsed = parseMore(long.slice(0, n), before);
    same(parsed.blocks.map((b) => b.text).join(""), long.slice(0, n), `after ${n}`);
    before?.blocks
      .slice(0, -2)
      .forEach((b, i) => holds(parsed!.blocks[i] === b, `block ${i} was parsed again after ${n}`));
  }
  same(kinds(parseMore(long, parsed)), kinds(parse(long)));
});

test("markdown: finished blocks keep their elements during streaming", () =>
  drawn(null, async (box) => {
    render(<Markdown streaming text={long.slice(0, 120)} />, box);
    await ready(box);
    const first = box.querySelector("[data-slug]");
    const code = await until(() => box.querySelector(".content-code"), "code");
    render(<Markdown streaming text={long} />, box);
    render(<Markdown text={long} />, box);
    holds(
      box.querySelector("[data-slug]") === first && box.querySelector(".content-code") === code,
      "elements were replaced",
    );
  }));

test("markdown: open constructs at the end are closed temporarily", () => {
  for (const [open, closed] of [
    ["a **b", "a **b**"],
    ["a *b", "a *b*"],
    ["a **", "a "],
    ["`x", "`x`"],
    ["`x` *y*", "`x` *y*"],
    ["see [this](http://ex", "see this"],
    ["x ![pic](a", "x "],
    ["text\n-", "text\n"],
    ["2 * 3", "2 * 3"],
    ["~~a", "~~a~~"],
  ] as const)
    same(closeMarks(open).trimEnd(), closed.trimEnd(), open);
});

test("markdown: a token after 100 kB parses only the last blocks again", () => {
  const text = long.repeat(Math.ceil(100_000 / long.length));
  let parsed = parseMore(text, undefined);
  for (let i = 1; i <= 100; i++) {
    const before = parsed;
    parsed = parseMore(`${text}${"word ".repeat(i)}`, before);
    const again = parsed.blocks.filter((b) => !before.blocks.includes(b)).reduce((n, b) => n + b.text.length, 0);
    holds(again <= 2000, `${again} characters were parsed again after ${i} words`);
  }
});

test("markdown: decodes HTML entities, and keeps other text", () => {
  const said = {
    "&copy;": "©",
    "&Eacute;": "É",
    "&nbsp;": "\u00a0",
    "&Tab;": "\t",
    "&NewLine;": "\n",
    "&semi;": ";",
    "&lt;": "<",
    "&NotEqualTilde;": "≂̸",
  };
  for (const [entity, means] of Object.entries(said)) same(decodeHTMLStrict(entity), means, entity);
  for (const none of ["&copyx;", "&notit;", "&nosuch;", "&amp", "&lt;/title&gt;", "&;"])
    same(decodeHTMLStrict(none), none, none);
});
