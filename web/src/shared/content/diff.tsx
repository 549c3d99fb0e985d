import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button, failed } from "../ui";
import { type Mark, Note, drawPieces, useColour } from "./code";
import type { Piece } from "./colours";
import {
  endsFile,
  type Hunk,
  hunks,
  linesOf,
  type Pair,
  pairs,
  type Range,
  type Row,
  wholeFileHunk,
  expandHunks,
  changedPart,
} from "./difflines";
import { known } from "./languages";
import { showHiddenCharacters } from "./visibletext";
import "./content.css";

export type Side = "old" | "new";

/** What a page adds to the lines of a diff. */
export interface LineTools {
  /** Makes line numbers buttons. */
  press?: (side: Side, line: number) => void;
  /** The label of such a button. */
  label: (side: Side, line: number) => string;
  /** Returns the content below a line. */
  below: (side: Side, line: number) => ComponentChildren;
  /** Returns the content below the file. drawn reports whether a line is shown. */
  rest: (drawn: (side: Side, line: number) => boolean) => ComponentChildren;
}

interface DiffProps {
  /** The unified diff of one file. */
  diff?: string;
  /** The text of a file, which is shown as a whole instead of a diff. */
  text?: string;
  path: string;
  /** Notes about lines of the new file. */
  marks?: Mark[];
  /** Shows both sides next to each other, if they fit. */
  sides?: boolean;
  tools?: LineTools;
  /** Gets the text of the new file, for more lines around the changes. */
  file?: () => Promise<string | null>;
}

/** The number of lines that are drawn at first, because more are slow. */
const first = 1500;

/** Below this width in pixels, two sides are not readable. */
const room = 720;

/** The number of lines that one press shows in addition. */
const step = 10;

/** Diff shows the changes of a file, or all its lines. */
export function Diff({ diff = "", text, path, marks = [], sides, tools, file }: DiffProps) {
  const { all, rest, show } = useHunks(diff, text, file);
  const [most, setMost] = useState(first);
  const colour = useColour(known(undefined, path));
  const box = useRef<HTMLDivElement>(null);
  const wide = useRoom(box);
  const beside = !!sides && wide && text === undefined;
  const hidden = all.reduce((n, h) => n + h.rows.length, 0) - most;
  const drawn = useMemo(() => upTo(all, most), [all, most]);
  const lines = useMemo(() => {
    const rows = drawn.flatMap((h) => h.rows);
    return { new: new Set(rows.map((r) => r.new)), old: new Set(rows.map((r) => (r.new ? undefined : r.old))) };
  }, [drawn]);
  const set = { beside, marks, tools, colour };
  useOneStop(box);
  return (
    <div class={tools?.press ? "content-diff pressable" : "content-diff"} ref={box} dir="ltr">
      {!all.length && <p class="muted small">{msg(text === undefined ? "content.same" : "diff.empty")}</p>}
      {!!all.length && (
        <table key={beside ? "beside" : "below"} class={beside ? "beside" : "below"} onKeyDown={moveFocus}>
          <caption class="visually-hidden">
            {text === undefined ? msg("content.changes", { path }) : msg("content.codeOf", { what: path })}
          </caption>
          <colgroup>
            {text === undefined && <col class="narrow" />}
            <col class={beside ? "" : "narrow"} />
            {beside && <col class="narrow" />}
            <col />
          </colgroup>
          {beside ? <SidesHead /> : <BelowHead old={text === undefined} />}
          {drawn.map((h, i) => (
            <Part key={h.from} hunk={h} first={i === 0} whole={text !== undefined} show={show} {...set} />
          ))}
          {show && hidden <= 0 && rest !== 0 && (
            <tbody>
              <Gap columns={beside ? 4 : 3} from={all.at(-1)!.next.new} lines={rest} show={show} end />
            </tbody>
          )}
        </table>
      )}
      {hidden > 0 && (
        <div class="rest">
          <Button small onClick={() => setMost(Infinity)}>
            {msg("content.more", { count: hidden })}
          </Button>
        </div>
      )}
      {tools?.rest((side, line) => lines[side].has(line))}
    </div>
  );
}

/** useHunks returns the hunks with the lines that the user asked for, and the number of lines after them, if known. */
function useHunks(diff: string, text: string | undefined, file: DiffProps["file"]) {
  const [ranges, setRanges] = useState<Range[]>([]);
  const [lines, setLines] = useState<string[]>();
  const parsed = useMemo(() => (text === undefined ? hunks(diff) : wholeFileHunk(text)), [diff, text]);
  const wide = useMemo(() => (lines ? expandHunks(parsed, lines, ranges) : undefined), [parsed, lines, ranges]);
  const show = async (range: Range) => {
    if (!lines) {
      const got = await file!();
      if (got === null) throw new Error(msg("diff.noText"));
      setLines(linesOf(got));
    }
    setRanges((was) => [...was, range]);
  };
  const can = file && text === undefined;
  return {
    all: wide?.hunks ?? parsed,
    rest: wide?.rest ?? (endsFile(parsed) ? 0 : undefined),
    show: can ? (r: Range) => void show(r).catch(failed) : undefined,
  };
}

/** useOneStop lets one of the line buttons be reached by the tab key; arrow keys reach the others. */
function useOneStop(box: { current: HTMLElement | null }) {
  useEffect(() => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>(".line-press") ?? [])];
    if (all.length && !all.some((b) => b.tabIndex === 0)) all[0]!.tabIndex = 0;
  });
}

function moveFocus(e: KeyboardEvent & { currentTarget: HTMLElement }) {
  const from = e.target as HTMLElement;
  if (!from.classList.contains("line-press") || (e.key !== "ArrowDown" && e.key !== "ArrowUp")) return;
  const all = [...e.currentTarget.querySelectorAll<HTMLElement>(".line-press")];
  const to = all[all.indexOf(from) + (e.key === "ArrowDown" ? 1 : -1)];
  if (!to) return;
  e.preventDefault();
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

function useRoom(box: { current: HTMLElement | null }): boolean {
  const [wide, setWide] = useState(false);
  useLayoutEffect(() => {
    setWide(box.current!.clientWidth >= room); // before the content below a line takes the focus
    const watch = new ResizeObserver(([e]) => setWide(e!.contentRect.width >= room));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return wide;
}

function upTo(all: Hunk[], most: number): Hunk[] {
  const out: Hunk[] = [];
  for (const h of all) {
    if (most <= 0) break;
    out.push({ ...h, rows: h.rows.slice(0, most) });
    most -= h.rows.length;
  }
  return out;
}

const BelowHead = ({ old }: { old: boolean }) => (
  <thead class="visually-hidden">
    <tr>
      {old && <th scope="col">{msg("content.oldLine")}</th>}
      <th scope="col">{msg("content.newLine")}</th>
      <th scope="col">{msg("content.text")}</th>
    </tr>
  </thead>
);

const SidesHead = () => (
  <thead class="visually-hidden">
    <tr>
      <th scope="col">{msg("content.oldLine")}</th>
      <th scope="col">{msg("content.oldText")}</th>
      <th scope="col">{msg("content.newLine")}</th>
      <th scope="col">{msg("content.newText")}</th>
    </tr>
  </thead>
);

interface Setting {
  beside: boolean;
  marks: Mark[];
  tools?: LineTools;
  colour?: (text: string) => Piece[][];
}

type Show = (range: Range) => void;

function Part({
  hunk,
  first,
  whole,
  show,
  ...set
}: Setting & { hunk: Hunk; first: boolean; whole: boolean; show?: Show }) {
  const lines = pairs(hunk.rows);
  const from = hunk.rows.find((r) => r.new)?.new ?? 1;
  const { colour } = set;
  const pieces = useMemo(() => (colour ? colouredRows(hunk.rows, colour) : undefined), [hunk.rows, colour]);
  const of = (r: Row) => pieces?.get(rowKey(r)) ?? [["", r.text] as Piece];
  return (
    <tbody>
      {show && hunk.skipped > 0 ? (
        <Gap
          columns={set.beside ? 4 : 3}
          from={hunk.from - hunk.skipped}
          lines={hunk.skipped}
          about={hunk.about}
          show={show}
          start={first}
        />
      ) : (
        !whole && (
          <tr class="gap">
            <th scope="rowgroup" colSpan={set.beside ? 4 : 3}>
              {hunk.skipped > 0 ? msg("content.skipped", { count: hunk.skipped }) : msg("content.from", { n: from })}{" "}
              {hunk.about && <code>{showHiddenCharacters(hunk.about)}</code>}
            </th>
          </tr>
        )
      )}
      {set.beside ? (
        lines.map((p, i) => <Beside key={i} pair={p} of={of} {...set} />)
      ) : (
        <Below rows={hunk.rows} lines={lines} whole={whole} of={of} {...set} />
      )}
    </tbody>
  );
}

/** Gap says how many lines are left out, and shows more of them. */
function Gap({
  columns,
  from,
  lines,
  about,
  show,
  start,
  end,
}: {
  columns: number;
  /** The first line that is left out. */
  from: number;
  /** The number of lines that are left out, if known. */
  lines?: number;
  about?: string;
  show: Show;
  /** Whether no changes are above, or below. */
  start?: boolean;
  end?: boolean;
}) {
  const few = lines !== undefined && lines <= step;
  const last = lines === undefined ? Infinity : from + lines - 1;
  return (
    <tr class="gap">
      <th scope="rowgroup" colSpan={columns}>
        <span class="row">
          {lines !== undefined && <span>{msg("content.skipped", { count: lines })}</span>}
          {about && <code>{showHiddenCharacters(about)}</code>}
          {!few && !start && (
            <Button small look="quiet" icon="down" onClick={() => show([from, from + step - 1])}>
              {msg("diff.below", { count: step })}
            </Button>
          )}
          {!few && !end && (
            <Button small look="quiet" icon="up" onClick={() => show([last - step + 1, last])}>
              {msg("diff.above", { count: step })}
            </Button>
          )}
          <Button small look="quiet" onClick={() => show([from, last])}>
            {msg(lines === undefined ? "diff.toEnd" : "diff.all")}
          </Button>
        </span>
      </th>
    </tr>
  );
}

const rowKey = (r: Row) => (r.new ? `+${r.new}` : `-${r.old}`);

/** colouredRows returns the colored pieces of rows. The lines of both sides are colored together. */
function colouredRows(rows: Row[], colour: (text: string) => Piece[][]): Map<string, Piece[]> {
  const out = new Map<string, Piece[]>();
  for (const gone of ["added", "removed"] as const) {
    const side = rows.filter((r) => r.kind !== gone);
    colour(side.map((r) => r.text).join("\n")).forEach((pieces, i) => {
      const row = side[i];
      if (row && pieces.reduce((n, [, text]) => n + text.length, 0) === row.text.length) out.set(rowKey(row), pieces);
    });
  }
  return out;
}

type PiecesOf = (r: Row) => Piece[];

function Below({
  rows,
  lines,
  whole,
  of,
  marks,
  tools,
}: Setting & { rows: Row[]; lines: Pair[]; whole: boolean; of: PiecesOf }) {
  const pairOf = new Map<Row, Pair>(
    lines.flatMap((p) => [p.left, p.right].filter((r) => r !== undefined).map((r) => [r, p] as [Row, Pair])),
  );
  const columns = whole ? 2 : 3;
  return (
    <>
      {rows.map((r) => (
        <Fragment key={rowKey(r)}>
          <tr class={r.kind}>
            {!whole && <LineNumber side="old" line={r.old} tools={r.new ? undefined : tools} />}
            <LineNumber side="new" line={r.new} tools={tools} />
            <Text row={r} pair={pairOf.get(r)} pieces={of(r)} />
          </tr>
          <Under line={r.new} marks={marks} columns={columns}>
            {r.new ? tools?.below("new", r.new) : tools?.below("old", r.old!)}
          </Under>
        </Fragment>
      ))}
    </>
  );
}

function Beside({ pair, of, marks, tools }: Setting & { pair: Pair; of: PiecesOf }) {
  const { left, right } = pair;
  const removed = left && left.kind === "removed" ? left.old : undefined;
  return (
    <>
      <tr>
        <LineNumber side="old" line={left?.old} kind={left?.kind ?? "none"} tools={removed ? tools : undefined} />
        {left ? <Text row={left} pair={pair} pieces={of(left)} /> : <td class="none" />}
        <LineNumber side="new" line={right?.new} kind={right?.kind ?? "none"} tools={tools} />
        {right ? <Text row={right} pair={pair} pieces={of(right)} /> : <td class="none" />}
      </tr>
      <Under line={right?.new} marks={marks} columns={4}>
        {removed !== undefined && tools?.below("old", removed)}
        {right?.new !== undefined && tools?.below("new", right.new)}
      </Under>
    </>
  );
}

function LineNumber({ side, line, kind, tools }: { side: Side; line?: number; kind?: string; tools?: LineTools }) {
  return (
    <td class={kind ? `n ${kind}` : "n"}>
      {line !== undefined && tools?.press ? (
        <button
          type="button"
          class="line-press"
          tabIndex={-1}
          aria-label={tools.label(side, line)}
          title={tools.label(side, line)}
          onClick={() => tools.press!(side, line)}
        >
          {line}
        </button>
      ) : (
        line
      )}
    </td>
  );
}

const signs = { added: "+", removed: "−", same: " " } as const;

/** Text shows a line with its sign and the changed words. */
function Text({ row, pair, pieces }: { row: Row; pair?: Pair; pieces: Piece[] }) {
  return (
    <td class={`t ${row.kind}`}>
      <span class="sign" aria-hidden="true">
        {signs[row.kind]}
      </span>
      {row.kind !== "same" && <span class="visually-hidden">{msg(`content.${row.kind}`)} </span>}
      <code>{changed(row, pair, pieces)}</code>
      {row.noEnd && <span class="muted small"> {msg("content.noEnd")}</span>}
    </td>
  );
}

function changed(row: Row, pair: Pair | undefined, pieces: Piece[]): ComponentChildren {
  const both =
    row.kind !== "same" && pair?.left && pair.right && row.text.length < 2000
      ? changedPart(pair.left.text, pair.right.text)
      : undefined;
  if (!both) return drawPieces(pieces);
  const to = row.kind === "added" ? both.newTo : both.oldTo;
  const middle = drawPieces(cut(pieces, both.from, to));
  return [
    drawPieces(cut(pieces, 0, both.from)),
    to > both.from && (row.kind === "added" ? <ins>{middle}</ins> : <del>{middle}</del>),
    drawPieces(cut(pieces, to, Infinity)),
  ];
}

/** cut returns the pieces of a part of a line. */
function cut(pieces: Piece[], from: number, to: number): Piece[] {
  let at = 0;
  return pieces.flatMap(([kind, text]): Piece[] => {
    const part = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    at += text.length;
    return part ? [[kind, part]] : [];
  });
}

/** Under shows the notes about a line, and what the page adds. */
function Under({
  line,
  marks,
  columns,
  children,
}: {
  line?: number;
  marks: Mark[];
  columns: number;
  children?: ComponentChildren;
}) {
  const here = line === undefined ? [] : marks.filter((m) => m.line === line);
  const more = [children].flat().filter((c) => c !== null && c !== undefined && c !== false);
  return here.length || more.length ? (
    <tr class="marks">
      <td colSpan={columns}>
        {here.map((m, i) => (
          <Note key={i} mark={m} />
        ))}
        {children}
      </td>
    </tr>
  ) : null;
}
