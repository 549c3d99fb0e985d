import { render } from "preact";
import hostile from "../../../internal/untrusted/untrustedtest/testdata/hostile.txt?raw";
import legitimate from "../../../internal/untrusted/untrustedtest/testdata/legitimate.txt?raw";
import { holds, same, test, until } from "../../test/units/check";
import { CompleteList } from "../pages/chat/completion";
import { Code } from "../shared/content/code";
import { Diff } from "../shared/content/diff";
import { Markdown } from "../shared/content/markdown";
import { showHiddenCharacters } from "../shared/content/visibletext";

/** unquoted returns the Go strings of a file, one in each line. Invalid bytes become U+FFFD. */
const unquoted = (file: string) =>
  file
    .trim()
    .split("\n")
    .map((line) =>
      line
        .slice(1, -1)
        .replace(
          /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/g,
          (_, x?: string, u?: string, U?: string, c?: string) => {
            if (x) return parseInt(x, 16) < 0x80 ? String.fromCodePoint(parseInt(x, 16)) : "\ufffd";
            if (c) return { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" }[c] ?? c;
            return String.fromCodePoint(parseInt(u ?? U ?? "", 16));
          },
        ),
    );

/** As in untrustedtest.Hidden, without line breaks. */
const invisible =
  // eslint-disable-next-line no-misleading-character-class
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{10ffff}]/u;

/** drawnText returns what a reader sees of a view. */
function drawnText(view: preact.ComponentChild) {
  const box = document.createElement("div");
  render(view, box);
  const text = box.textContent ?? "";
  render(null, box);
  return text;
}

/** suggestion returns the list of the "/" menu with one skill, whose texts are all the same. */
function suggestion(text: string) {
  const skill = { name: text, title: text + " title", description: text, namespace: text };
  const nothing = () => false;
  return (
    <CompleteList
      state={{
        open: true,
        found: [skill],
        groups: [[text, [skill]]],
        at: 0,
        list: "l",
        pick: nothing,
        key: nothing,
      }}
    />
  );
}

test("visible text: shows the characters of each hostile text, in Markdown, code, a diff and the / menu", async () => {
  const box = document.createElement("div");
  render(<Markdown text="Load the parser." />, box);
  await until(() => box.querySelector(".content-md:not(.plain)"), "the parser");
  const all = unquoted(hostile);
  same(all.length > 200, true);
  for (const text of all) {
    const body = text.replace(/\r\n?/g, "\n");
    for (const view of [
      <pre>{showHiddenCharacters(text)}</pre>,
      <Markdown text={body} />,
      <Code text={text} plain />,
      <Diff diff={`--- a\n+++ b\n@@ -1 +1 @@\n-old\n+${body.replaceAll("\n", " ")}\n`} path="a.md" />,
      suggestion(text),
    ]) {
      const got = drawnText(view);
      holds(!invisible.test(got), `${JSON.stringify(text)} is shown as ${JSON.stringify(got)}`);
      holds(!invisible.test(body) || /U\+|\ufffd/.test(got), `${JSON.stringify(text)} has no mark`);
    }
  }
});

test("visible text: keeps legitimate texts, but for joiners and isolates of scripts", () => {
  for (const text of unquoted(legitimate)) {
    const marks = drawnText(<pre>{showHiddenCharacters(text)}</pre>);
    if (/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Mongolian}\u200b\u200c\u2066-\u2069]|\p{M}/u.test(text)) continue;
    same(marks, text);
  }
});
