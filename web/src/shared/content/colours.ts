import hljs from "highlight.js/lib/core";
import { grammar } from "./languages";

/** The kind of a piece of code, if it has a color. */
type Kind = "" | "keyword" | "string" | "number" | "comment" | "name" | "plus" | "minus" | "strong";
export type Piece = [kind: Kind, text: string];

const kinds: Record<string, Kind> = {
  keyword: "keyword",
  "selector-tag": "keyword",
  operator: "keyword",
  tag: "keyword",
  section: "strong",
  strong: "strong",
  emphasis: "strong",
  string: "string",
  regexp: "string",
  symbol: "string",
  char: "string",
  link: "string",
  code: "string",
  number: "number",
  literal: "number",
  bullet: "number",
  "template-variable": "number",
  comment: "comment",
  quote: "comment",
  meta: "comment",
  doctag: "comment",
  name: "name",
  title: "name",
  attr: "name",
  attribute: "name",
  built_in: "name",
  type: "name",
  property: "name",
  variable: "name",
  "selector-class": "name",
  "selector-id": "name",
  "selector-attr": "name",
  addition: "plus",
  deletion: "minus",
};

/** Longer texts are not colored. */
const most = 200_000;
const longestLine = 5_000;

const coming = new Map<string, Promise<void>>();

/** grammars returns the languages whose grammars color a language: front matter of Markdown is YAML. */
const grammars = (language: string) => (language === "markdown" ? [language, "yaml"] : [language]);

const frontMatter = /^---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|$)/;

/** ready reports whether the grammars of a language are loaded. */
export const ready = (language: string) => grammars(language).every((l) => hljs.getLanguage(l) !== undefined);

/** loadGrammars loads the grammars of a language. */
export const loadGrammars = (language: string) => Promise.all(grammars(language).map(loadGrammar));

function loadGrammar(language: string): Promise<void> {
  let got = coming.get(language);
  if (!got) {
    got = grammar(language).then((g) => hljs.registerLanguage(language, g.default));
    got.catch(() => coming.delete(language));
    coming.set(language, got);
  }
  return got;
}

/** highlightLines returns the lines in pieces with their kinds. Without a grammar, all pieces are plain. */
export function highlightLines(text: string, language: string | undefined): Piece[][] {
  if (!language || !ready(language) || text.length > most) return plain(text);
  const lines = text.split("\n");
  if (lines.some((l) => l.length > longestLine)) return plain(text);
  const html = (part: string, language: string) => hljs.highlight(part, { language, ignoreIllegals: true }).value;
  const front = (language === "markdown" && frontMatter.exec(text)?.[0]) || "";
  return pieces((front && html(front, "yaml")) + html(text.slice(front.length), language));
}

export const plain = (text: string): Piece[][] => text.split("\n").map((line) => [["", line]]);

const entities: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" };

/** pieces parses the HTML of the highlighter, which has spans only. The browser never gets this HTML. */
function pieces(html: string): Piece[][] {
  const lines: Piece[][] = [[]];
  const open: Kind[] = [""];
  for (const [part, scope] of html.matchAll(/<span class="([^"]*)">|<\/span>|[^<]+/g)) {
    if (part === "</span>") open.pop();
    else if (scope !== undefined) open.push(kinds[scope.split(" ")[0]!.replace(/^hljs-/, "")] ?? open.at(-1) ?? "");
    else {
      const text = part.replace(/&(lt|gt|quot|#x27|amp);/g, (e) => entities[e]!);
      text.split("\n").forEach((t, i) => {
        if (i) lines.push([]);
        if (t) lines.at(-1)!.push([open.at(-1) ?? "", t]);
      });
    }
  }
  return lines;
}
