import { holds, same, test, until } from "../../../test/units/check";
import { Markdown } from "./markdown";
import { drawn } from "./markdown.test";
import { parse, parseMore, type Parsed, type Token } from "./parse";
import { closeMarks } from "./repair";

const all = (tokens: Token[]): Token[] => tokens.flatMap((t) => [t, ...all(t.children ?? [])]);

/** formulas returns the TeX of the formulas in a text, with "display " before those on their own lines. */
const formulas = (text: string) =>
  parse(text, true)
    .blocks.flatMap((b) => all(b.tokens))
    .filter((t) => t.type === "formula")
    .map((t) => `${t.info} ${t.content}`.trim());

test("formulas: each kind of marks is read, and nothing in it is Markdown", () => {
  for (const [text, ...tex] of [
    ["$a_1 * b_2 * c$ and $x$", "a_1 * b_2 * c", "x"],
    [String.raw`The \(a_1\) and \[ x\_y \] here`, String.raw`a_1`, String.raw`display x\_y`],
    ["$$E = mc^2$$", "display E = mc^2"],
    [
      "$$\n\\begin{aligned}\n- a &= b \\\\\n# c &= *d*\n\\end{aligned}\n$$",
      "display \\begin{aligned}\n- a &= b \\\\\n# c &= *d*\n\\end{aligned}",
    ],
    ["So:\n\\[\n\\frac{a}{b}\n\\]\nend", "display \\frac{a}{b}"],
    ["- one $a_b$\n- two\n\n  $$\n  x_1\n  $$\n\n1. three \\(c_d\\)", "a_b", "display x_1", "c_d"],
    ["> $$\n> q\n> $$", "display q"],
    ["| a | b |\n|---|---|\n| $|x|_1$ | \\(p|q\\) |\n| $5 | $6 |", "|x|_1", "p|q"],
    ["| a | b |\n|---|---|\n| $\\|x\\|$ | y |", "\\|x\\|"],
    ["# About $n^2$\n\n**$x$**, [$y$](https://example.org)", "n^2", "x", "y"],
    ["公式$x$，the $n$th", "x", "n"],
    ["$\\$5 + x$", "\\$5 + x"],
  ] as const)
    same(formulas(text), tex, text);
});

test("formulas: prices, names, code and escaped brackets stay text", () => {
  for (const text of [
    "It costs $5 and $10, or $5-$10 ($5) or 5$ and 10$.",
    "$5 per unit, or 10$",
    "US$5 and CA$6, $HOME/bin:$PATH, $HOME and $USER",
    "`$x$` and `` $$y$$ ``",
    "```sh\necho $a$ \\(b\\)\n```\n\n    $$indented$$",
    "\\[x\\] \\[1\\] \\[a link\\](b) \\$x\\$",
    "$$ is the process, \\(\\), $ x $",
    "$$$$",
    "$a\nb$",
  ])
    same(formulas(text), [], text);
  holds(!all(parse("$x$ \\(y\\)").blocks[0]!.tokens).some((t) => t.type === "formula"), "formulas without the option");
  same(formulas("$x$".repeat(2) + " $" + "y".repeat(4000) + "$"), [], "a formula is too long");
  holds(
    formulas(`${"$" + "z".repeat(2900) + "$ "}`.repeat(50)).length === 10,
    "the length of all formulas has a limit",
  );
});

const growing =
  "Take $a*b$ and\n\n$$\n- x\n# y\n* z\n\\frac{1}{2}\n$$\n\nthen \\(c_d\\) for $5.\n\n| a |\n|---|\n| $|x|$ |\n\n\\[ p \\]\n\n- in\n\n  $$q$$\n\nend\n";

test("formulas: incremental parsing gives the same result", () => {
  const kinds = (p: Parsed) =>
    p.blocks.map((b) => [
      b.text,
      all(b.tokens)
        .map((t) => t.type + t.content)
        .join(),
    ]);
  let parsed: Parsed | undefined;
  for (let n = 1; n <= growing.length; n++) {
    parsed = parseMore(growing.slice(0, n), parsed, true);
    same(parsed.blocks.map((b) => b.text).join(""), growing.slice(0, n), `after ${n}`);
  }
  same(kinds(parsed!), kinds(parse(growing, true)));
  same(closeMarks("$a * b *c$ d"), "$a * b *c$ d");
});

test("formulas: they are drawn for the eye and for screen readers, without anything from TeX on the page", () =>
  drawn(
    <Markdown
      formulas
      text={
        "The $x_1$ is\n\n$$\\frac{a}{b}$$\n\n$\\wrong{$ stays, and $\\href{javascript:alert(1)}{x}$, " +
        "$\\htmlId{evil}{y}$, $\\includegraphics{https://evil.example/p.png}$, $\\text{<img src=x onerror=alert(1)>}$"
      }
    />,
    async (box) => {
      await until(() => box.querySelector(".content-equation .katex"), "a formula");
      same(box.querySelector("math annotation")?.textContent, "x_1");
      same(box.querySelector(".katex-html")?.getAttribute("aria-hidden"), "true");
      holds(box.querySelector("math mfrac"), "the fraction has no MathML");
      holds(box.textContent!.includes("$\\wrong{$ stays"), "a wrong formula is not shown as written");
      same(box.querySelectorAll("a, img, script, #evil").length, 0);
    },
  ));

test("formulas: hostile formulas are shown as written", () =>
  drawn(
    <Markdown
      formulas
      text={[
        "$x$",
        `$\\def\\a{${"x".repeat(1500)}}${"\\a".repeat(300)}$`,
        `$${"{".repeat(1400)}x${"}".repeat(1400)}$`,
        `$${"\\sqrt{".repeat(300)}x${"}".repeat(300)}$`,
        "$\\text{a\u202eb}$",
        "$\\newcommand{\\b}{\\b\\b}\\b$",
      ].join("\n\n")}
    />,
    async (box) => {
      await until(() => box.querySelector(".katex"), "the first formula");
      same(box.querySelectorAll(".katex").length, 1);
      holds(box.querySelectorAll("*").length < 200, "too many elements");
    },
  ));

test("formulas: nothing is drawn outside of the box of a formula", () =>
  drawn(
    <Markdown formulas text={"$\\kern{-400em}\\raisebox{-500em}{out}$ and $$\\rule{9999em}{9999em}$$"} />,
    async (box) => {
      const inner = await until(() => box.querySelector<HTMLElement>(".content-formula"), "a formula");
      same(getComputedStyle(inner).overflowY, "hidden");
      holds(box.getBoundingClientRect().height < 2200, "a formula is very tall");
    },
  ));
