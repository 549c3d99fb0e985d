import type { MarkdownIt, StateBlock, StateCore, StateInline } from "markdown-it";

/** A formula in a text. */
interface Formula {
  /** The TeX between the marks. */
  tex: string;
  /** The position after the closing mark. */
  end: number;
  /** Whether it stands on a line of its own. */
  display: boolean;
}

/** The limits on one formula and on all formulas of a text, in characters. What is beyond stays text. */
const longest = 3000;
const most = 30_000;

const marks = [
  { open: "$$", close: "$$", display: true },
  { open: "\\[", close: "\\]", display: true },
  { open: "\\(", close: "\\)", display: false },
];

/** formulaAt returns the formula that starts at a position, if any. */
function formulaAt(text: string, at: number): Formula | undefined {
  const pair = marks.find((m) => text.startsWith(m.open, at));
  if (!pair) return text[at] === "$" ? betweenDollars(text, at) : undefined;
  const to = closing(text, at + 2, pair.close);
  if (to < 0) return undefined;
  const end = to + 2;
  const tex = text.slice(at + 2, to).trim();
  const brackets = pair.open === "\\[" && (/^(.|\d+)$/.test(tex) || text[end] === "("); // as in \[x\] and \[a\](b)
  return tex && !brackets ? { tex, end, display: pair.display } : undefined;
}

/**
 * betweenDollars returns the formula between two dollar signs. Amounts such as $5 and names such as
 * $HOME stay text: a formula is on one line, and has no blank inside and no word outside its signs.
 */
function betweenDollars(text: string, at: number): Formula | undefined {
  if (/[\w$]/.test(text[at - 1] ?? "")) return undefined;
  const to = closing(text, at + 1, "$");
  const tex = to < 0 ? "" : text.slice(at + 1, to);
  if (!tex || /^\s|\s$|[\n`]/.test(tex)) return undefined;
  if (/^(?!(th|st|nd|rd|s)\b)[\w$]/.test(text.slice(to + 1, to + 4))) return undefined;
  const amount = /^\d[^\\^_=+*<>{}]*$/.test(tex) && /\s[a-z]{2}/i.test(tex); // as in "$5 per unit, or 10$"
  return amount ? undefined : { tex, end: to + 1, display: false };
}

/** closing returns the position of the next closing mark without a backslash before it, or -1. */
function closing(text: string, from: number, close: string): number {
  const part = text.slice(from, from + longest + close.length);
  for (let at = part.indexOf(close); at >= 0; at = part.indexOf(close, at + 1)) {
    let slashes = 0;
    while (part[at - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return from + at;
  }
  return -1;
}

/** The environment of a parser that reads formulas. */
interface Env {
  /** Whether more text follows. */
  growing?: boolean;
  /** The length of the formulas so far. */
  formulas?: number;
}

/** readFormulas makes a parser produce tokens of the type "formula". */
export function readFormulas(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("escape", "formula", inParagraph);
  markdown.block.ruler.before("fence", "formula", onLines, { alt: ["paragraph", "reference", "blockquote", "list"] });
  markdown.core.ruler.before("block", "hide_pipes", hidePipes);
  markdown.core.ruler.after("block", "show_pipes", showPipes);
}

/** spend reports whether the limit permits another formula. */
function spend(env: Env, tex: string, silent: boolean): boolean {
  const length = (env.formulas ?? 0) + tex.length;
  if (!silent && length <= most) env.formulas = length;
  return length <= most;
}

/** inParagraph reads a formula before its characters become emphasis and escapes. */
function inParagraph(state: StateInline, silent: boolean): boolean {
  const found = formulaAt(state.src, state.pos);
  if (!found || found.end > state.posMax || !spend(state.env as Env, found.tex, silent)) return false;
  if (!silent) {
    const token = state.push("formula", "math", 0);
    token.content = found.tex;
    token.info = found.display ? "display" : "";
    token.markup = state.src.slice(state.pos, found.end);
  }
  state.pos = found.end;
  return true;
}

/** onLines reads a formula on lines of its own, which could also be read as lists or headings. */
function onLines(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const start = line(state, first);
  const pair = marks.find((m) => m.display && start.startsWith(m.open));
  if (!pair || state.sCount[first]! - state.blkIndent >= 4) return false;
  let source = start;
  let next = first + 1;
  while (!source.slice(2).endsWith(pair.close)) {
    if (next < last ? state.isEmpty(next) : !(state.env as Env).growing) return false;
    if (source.length > longest || source.slice(2).includes(pair.close)) return false;
    if (next >= last) break; // the rest is still to come
    source += "\n" + line(state, next++);
  }
  const found = formulaAt(source, 0);
  if (found ? found.end < source.length : source.slice(2).endsWith(pair.close)) return false;
  if (!spend(state.env as Env, source, silent)) return false;
  if (silent) return true;
  state.line = next;
  const token = state.push("formula", "math", 0);
  token.block = true;
  token.map = [first, next];
  token.content = found?.tex ?? "";
  token.info = "display";
  token.markup = source;
  return true;
}

const line = (state: StateBlock, n: number) =>
  state.src.slice(state.bMarks[n]! + state.tShift[n]!, state.eMarks[n]).trimEnd();

/** Stands for "|" in formulas while rows are divided into cells. It is not a character. */
const pipe = "\uffff";

function hidePipes(state: StateCore): void {
  if (!state.src.includes("|") || state.src.includes(pipe)) return;
  const parts: string[] = [];
  let done = 0;
  for (const { index } of state.src.matchAll(/[$\\]/g)) {
    const found = index < done ? undefined : formulaAt(state.src, index);
    if (!found) continue;
    const formula = state.src.slice(index, found.end);
    parts.push(state.src.slice(done, index), formula.includes("\n") ? formula : formula.replaceAll("|", pipe));
    done = found.end;
  }
  state.src = parts.join("") + state.src.slice(done);
}

function showPipes(state: StateCore): void {
  for (const token of state.tokens)
    for (const part of ["content", "info", "markup"] as const) token[part] = token[part].replaceAll(pipe, "|");
}
