import { useMemo, useRef } from "preact/hooks";
import { language } from "../words";
import { draw, type Setting } from "./draw";
import { heavy } from "./heavy";
import type { Block, Parsed } from "./parse";
import "./content.css";

interface MarkdownProps {
  text: string;
  /** Whether more is on its way: what is open at the end is closed for now. */
  streaming?: boolean;
  /**
   * The address of a file that the text names by a relative path; without it such pictures are
   * not shown and links are text. The path is from the root, clean: without "..", not encoded.
   */
  file?: (path: string) => string | undefined;
  /** The folder of the file that the text is from, as "references"; relative paths begin there. */
  base?: string;
  /** The level of the highest headings of the text, so that they stand in order below those of the page. */
  level?: number;
  /** Whether a line break of the text is one that is seen, as people write in a chat. */
  breaks?: boolean;
}

const useParser = heavy(() => import("./parse"));

/** Text as Markdown, with code, tables and diagrams. HTML in it is shown as text. */
export function Markdown({ text, streaming, file, base, level = 3, breaks }: MarkdownProps) {
  const parser = useParser();
  const last = useRef<Parsed | undefined>(undefined);
  const parsed = useMemo(() => {
    if (!parser) return undefined;
    return (last.current = streaming ? parser.parseMore(text, last.current) : parser.parse(text));
  }, [parser, text, streaming]);
  if (!parsed) return <div class="content-md plain">{text}</div>;
  const outline = outlines(parsed.blocks, level);
  const end = parsed.blocks.length - 1;
  return (
    <div class="content-md" onClick={toPlace}>
      {parsed.blocks.map((b, i) => (
        <Part key={i} block={b} above={outline[i]!} top={level} file={file} base={base} breaks={breaks} unfinished={streaming && i === end && !closed(b)} />
      ))}
    </div>
  );
}

interface PartProps extends Omit<Setting, "level"> {
  block: Block;
  /** The levels of the headings that are open where it begins. */
  above: string;
  top: number;
}

/** A block of the text, drawn again only when it is another. */
function Part({ block, above, top, file, base, breaks, unfinished }: PartProps) {
  return useMemo(() => {
    const open = above ? above.split(" ").map(Number) : [];
    return <>{draw(block.tokens, { file, base, breaks, unfinished, level: (written) => descend(open, written, top) })}</>;
  }, [block, above, top, file, base, breaks, unfinished, language.value]);
}

/** Which headings are open where each block begins. */
function outlines(blocks: Block[], top: number): string[] {
  const open: number[] = [];
  return blocks.map((b) => {
    const before = open.join(" ");
    for (const t of b.tokens) if (t.type === "heading_open") descend(open, Number(t.tag.slice(1)), top);
    return before;
  });
}

/** The level to show a heading at: one below the one it stands under, however it was written. */
function descend(open: number[], written: number, top: number): number {
  while (open.length && open.at(-1)! >= written) open.pop();
  open.push(written);
  return Math.min(top + open.length - 1, 6);
}

/** Whether a block that is code has its last line. */
function closed(block: Block): boolean {
  const fence = block.tokens.findLast((t) => t.type === "fence");
  if (!fence) return true;
  const lines = block.text.trimEnd().split("\n");
  const end = lines.at(-1)!.replace(/^[\s>]*/, "");
  return lines.length > 1 && end.startsWith(fence.markup) && !/[^`~]/.test(end);
}

/** A link to a heading goes to the one of this text: others on the page may have the same name. */
function toPlace(e: MouseEvent & { currentTarget: HTMLElement }) {
  const to = (e.target as Element).closest<HTMLElement>("a[data-to]")?.dataset.to;
  if (to === undefined) return;
  e.preventDefault();
  e.stopPropagation();
  const heading = [...e.currentTarget.querySelectorAll<HTMLElement>("[data-slug]")].find((h) => h.dataset.slug === to);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "start" });
}
