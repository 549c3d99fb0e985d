import MarkdownIt, { type Token } from "markdown-it";
import { readFormulas } from "./formularules";
import { closeMarks } from "./repair";

export type { Token };

/** An independent block of a text: a paragraph, a list, a table. */
export interface Block {
  /** The source with trailing blank lines. All blocks together are the text. */
  text: string;
  tokens: Token[];
}

export interface Parsed {
  blocks: Block[];
  /** Whether the text has reference links, which connect blocks. */
  references: boolean;
}

// HTML is text. Only complete addresses become links: "setup.py" is a file, not a host.
const plain = newParser();
const withFormulas = newParser();
readFormulas(withFormulas);

function newParser() {
  const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: 40 });
  parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  return parser;
}

/** parse parses a whole text. */
export function parse(text: string, formulas = false): Parsed {
  const markdown = formulas ? withFormulas : plain;
  const env = {};
  return { blocks: split(text, markdown.parse(text, env)), references: "references" in env };
}

/**
 * parseMore parses a growing text. Finished blocks are not parsed again and keep their identity.
 * Open marks at the end are closed for now.
 */
export function parseMore(text: string, before: Parsed | undefined, formulas = false): Parsed {
  const markdown = formulas ? withFormulas : plain;
  const done = finished(text, before?.blocks ?? []);
  const from = done.reduce((n, b) => n + b.text.length, 0);
  const env = { growing: true };
  const rest = text.slice(from);
  const blocks = split(rest, markdown.parse(rest, env));
  const last = blocks.at(-1);
  if (last && !isVerbatim(last)) last.tokens = markdown.parse(closeMarks(last.text), env);
  return { blocks: [...done, ...blocks], references: "references" in env || !!before?.references };
}

/**
 * finished returns the blocks that more text cannot change: all but the last two. An unfinished
 * line may still join the block above.
 */
function finished(text: string, before: Block[]): Block[] {
  const done: Block[] = [];
  let at = 0;
  for (const block of before.slice(0, -2)) {
    if (!text.startsWith(block.text, at)) break;
    done.push(block);
    at += block.text.length;
  }
  return done;
}

const verbatim = ["fence", "code_block", "formula"];
const isVerbatim = (block: Block) => block.tokens.some((t) => verbatim.includes(t.type));

function split(text: string, tokens: Token[]): Block[] {
  const starts = lineStarts(text);
  const parts: { at: number; tokens: Token[] }[] = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0 && token.nesting >= 0 && token.map)
      parts.push({ at: parts.length ? starts[token.map[0]]! : 0, tokens: [] });
    parts.at(-1)?.tokens.push(token);
    depth += token.nesting;
  }
  return parts.map((p, i) => ({ text: text.slice(p.at, parts[i + 1]?.at), tokens: p.tokens }));
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
