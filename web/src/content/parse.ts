import MarkdownIt, { type Token } from "markdown-it";
import { mend } from "./mend";

export type { Token };

/** A part of a text that stands by itself: a paragraph, a list, a table. */
export interface Block {
  /** As it was written, with the empty lines after it: all of them together are the text. */
  text: string;
  tokens: Token[];
}

export interface Parsed {
  blocks: Block[];
  /** Whether the text names addresses in one place and uses them in others. */
  references: boolean;
}

// HTML is text. Only whole addresses become links: "setup.py" and "notes.md" are files here, no hosts.
const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: 40 });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

/** Parses a whole text. */
export function parse(text: string): Parsed {
  const env = {};
  return { blocks: split(text, markdown.parse(text, env)), references: "references" in env };
}

/**
 * Parses a text of which more is on its way. What was finished before is not looked at again,
 * and keeps its identity; what is open at the end is closed for now.
 */
export function parseMore(text: string, before: Parsed | undefined): Parsed {
  const done = finished(text, before?.blocks ?? []);
  const from = done.reduce((n, b) => n + b.text.length, 0);
  const env = {};
  const rest = text.slice(from);
  const blocks = split(rest, markdown.parse(rest, env));
  const last = blocks.at(-1);
  if (last && !isFence(last)) last.tokens = markdown.parse(mend(last.text), env);
  return { blocks: [...done, ...blocks], references: "references" in env || !!before?.references };
}

/**
 * The blocks that more text cannot change: all but the last two. A line that is not
 * finished may still become a part of the block above it.
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

const isFence = (block: Block) => block.tokens.some((t) => t.type === "fence" || t.type === "code_block");

function split(text: string, tokens: Token[]): Block[] {
  const starts = lineStarts(text);
  const parts: { at: number; tokens: Token[] }[] = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0 && token.nesting >= 0 && token.map) parts.push({ at: parts.length ? starts[token.map[0]]! : 0, tokens: [] });
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
