import { useMemo, useRef } from "preact/hooks";
import { language } from "../i18n/language";
import { draw, type Setting } from "./elements";
import { lazyModule } from "./lazyload";
import type { Block, Parsed } from "./parse";
import { showHiddenCharacters } from "./visibletext";
import "./content.css";

interface MarkdownProps {
  text: string;
  /** Whether more text follows. Open marks at the end are closed for now. */
  streaming?: boolean;
  /**
   * Returns the address of a file by its clean path from the root. Without it, pictures are not
   * shown and links are text.
   */
  file?: (path: string) => string | undefined;
  /** The folder of the text, such as "references". Relative paths start there. */
  base?: string;
  /** The level of the highest heading of the text. */
  level?: number;
  /** Whether single line breaks are shown, as in chats. */
  breaks?: boolean;
  /** Whether code blocks with HTML documents and SVG images have previews, as in the answers of models. */
  previews?: boolean;
  /** Whether $…$, $$…$$, \\(…\\) and \\[…\\] are formulas, as in the answers of models. */
  formulas?: boolean;
}

const useParser = lazyModule(() => import("./parse"));

/** Markdown shows Markdown with code, tables and diagrams. HTML is shown as text. */
export function Markdown({ text, streaming, file, base, level = 3, breaks, previews, formulas }: MarkdownProps) {
  const parser = useParser();
  const last = useRef<Parsed | undefined>(undefined);
  const parsed = useMemo(() => {
    if (!parser) return undefined;
    return (last.current = streaming ? parser.parseMore(text, last.current, formulas) : parser.parse(text, formulas));
  }, [parser, text, streaming, formulas]);
  if (!parsed) return <div class="content-md plain">{showHiddenCharacters(text)}</div>;
  const outline = outlines(parsed.blocks, level);
  const end = parsed.blocks.length - 1;
  return (
    <div class="content-md" onClick={toPlace}>
      {parsed.blocks.map((b, i) => (
        <Part
          key={i}
          block={b}
          above={outline[i]!}
          top={level}
          file={file}
          base={base}
          breaks={breaks}
          previews={previews}
          unfinished={streaming && i === end && !closed(b)}
        />
      ))}
    </div>
  );
}

interface PartProps extends Omit<Setting, "level"> {
  block: Block;
  /** The levels of the open headings at its start. */
  above: string;
  top: number;
}

/** Part draws a block, again only when it changes. */
function Part({ block, above, top, file, base, breaks, previews, unfinished }: PartProps) {
  return useMemo(() => {
    const open = above ? above.split(" ").map(Number) : [];
    return (
      <>
        {draw(block.tokens, {
          file,
          base,
          breaks,
          previews,
          unfinished,
          level: (written) => descend(open, written, top),
        })}
      </>
    );
  }, [block, above, top, file, base, breaks, previews, unfinished, language.value]);
}

/** outlines returns the open headings at the start of each block. */
function outlines(blocks: Block[], top: number): string[] {
  const open: number[] = [];
  return blocks.map((b) => {
    const before = open.join(" ");
    for (const t of b.tokens) if (t.type === "heading_open") descend(open, Number(t.tag.slice(1)), top);
    return before;
  });
}

/** descend returns the level to show a heading at: one below its parent. */
function descend(open: number[], written: number, top: number): number {
  while (open.length && open.at(-1)! >= written) open.pop();
  open.push(written);
  return Math.min(top + open.length - 1, 6);
}

/** closed reports whether a code block has its closing fence. */
function closed(block: Block): boolean {
  const fence = block.tokens.findLast((t) => t.type === "fence");
  if (!fence) return true;
  const lines = block.text.trimEnd().split("\n");
  const end = lines.at(-1)!.replace(/^[\s>]*/, "");
  return lines.length > 1 && end.startsWith(fence.markup) && !/[^`~]/.test(end);
}

/** toPlace scrolls to a heading of this text, because other texts on the page may have the same anchors. */
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
