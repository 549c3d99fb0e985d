import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button } from "../ui";
import { type Mark, Note } from "./code";
import { type Hunk, hunks, type Pair, pairs, type Row, within } from "./difflines";
import { shown } from "./visibletext";
import "./content.css";

interface DiffProps {
  /** The unified diff of one file. */
  diff: string;
  path: string;
  /** Notes about lines of the new file. */
  marks?: Mark[];
  /** Shows both sides next to each other, if they fit. */
  sides?: boolean;
}

/** The number of lines that are drawn at first, because more are slow. */
const first = 1500;

/** Below this width in pixels, two sides are not readable. */
const room = 720;

/** Diff shows the changes of a file. */
export function Diff({ diff, path, marks = [], sides }: DiffProps) {
  const all = useMemo(() => hunks(diff), [diff]);
  const [most, setMost] = useState(first);
  const box = useRef<HTMLDivElement>(null);
  const wide = useRoom(box);
  const beside = !!sides && wide;
  const hidden = all.reduce((n, h) => n + h.rows.length, 0) - most;
  return (
    <div class="content-diff" ref={box} dir="ltr">
      {!all.length && <p class="muted small">{msg("content.same")}</p>}
      {!!all.length && (
        <table class={beside ? "beside" : "below"}>
          <caption class="visually-hidden">{msg("content.changes", { path })}</caption>
          <colgroup>
            <col class="narrow" />
            <col class={beside ? "" : "narrow"} />
            {beside && <col class="narrow" />}
            <col />
          </colgroup>
          {beside ? <SidesHead /> : <BelowHead />}
          {upTo(all, most).map((h, i) => (
            <Part key={i} hunk={h} beside={beside} marks={marks} />
          ))}
        </table>
      )}
      {hidden > 0 && (
        <div class="rest">
          <Button small onClick={() => setMost(Infinity)}>
            {msg("content.more", { count: hidden })}
          </Button>
        </div>
      )}
    </div>
  );
}

function useRoom(box: { current: HTMLElement | null }): boolean {
  const [wide, setWide] = useState(false);
  useEffect(() => {
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

const BelowHead = () => (
  <thead class="visually-hidden">
    <tr>
      <th scope="col">{msg("content.oldLine")}</th>
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

function Part({ hunk, beside, marks }: { hunk: Hunk; beside: boolean; marks: Mark[] }) {
  const lines = pairs(hunk.rows);
  const from = hunk.rows.find((r) => r.new)?.new ?? 1;
  return (
    <tbody>
      <tr class="gap">
        <th scope="rowgroup" colSpan={beside ? 4 : 3}>
          {hunk.skipped > 0 ? msg("content.skipped", { count: hunk.skipped }) : msg("content.from", { n: from })}{" "}
          {hunk.about && <code>{shown(hunk.about)}</code>}
        </th>
      </tr>
      {beside ? (
        lines.map((p, i) => <Beside key={i} pair={p} marks={marks} />)
      ) : (
        <Below rows={hunk.rows} lines={lines} marks={marks} />
      )}
    </tbody>
  );
}

function Below({ rows, lines, marks }: { rows: Row[]; lines: Pair[]; marks: Mark[] }) {
  const of = new Map<Row, Pair>(
    lines.flatMap((p) => [p.left, p.right].filter((r) => r !== undefined).map((r) => [r, p] as [Row, Pair])),
  );
  return rows.map((r, i) => (
    <>
      <tr key={i} class={r.kind}>
        <td class="n">{r.old}</td>
        <td class="n">{r.new}</td>
        <Text row={r} pair={of.get(r)} />
      </tr>
      <Marked line={r.new} marks={marks} columns={3} />
    </>
  ));
}

function Beside({ pair, marks }: { pair: Pair; marks: Mark[] }) {
  const { left, right } = pair;
  return (
    <>
      <tr>
        <td class={`n ${left?.kind ?? "none"}`}>{left?.old}</td>
        {left ? <Text row={left} pair={pair} /> : <td class="none" />}
        <td class={`n ${right?.kind ?? "none"}`}>{right?.new}</td>
        {right ? <Text row={right} pair={pair} /> : <td class="none" />}
      </tr>
      <Marked line={right?.new} marks={marks} columns={4} />
    </>
  );
}

const signs = { added: "+", removed: "−", same: " " } as const;

/** Text shows a line with its sign and the changed words. */
function Text({ row, pair }: { row: Row; pair?: Pair }) {
  return (
    <td class={`t ${row.kind}`}>
      <span class="sign" aria-hidden="true">
        {signs[row.kind]}
      </span>
      {row.kind !== "same" && <span class="visually-hidden">{msg(`content.${row.kind}`)} </span>}
      <code>{changed(row, pair)}</code>
      {row.noEnd && <span class="muted small"> {msg("content.noEnd")}</span>}
    </td>
  );
}

function changed(row: Row, pair: Pair | undefined): ComponentChildren {
  const both =
    row.kind !== "same" && pair?.left && pair.right && row.text.length < 2000
      ? within(pair.left.text, pair.right.text)
      : undefined;
  if (!both) return shown(row.text);
  const to = row.kind === "added" ? both.newTo : both.oldTo;
  const middle = row.text.slice(both.from, to);
  return [
    shown(row.text.slice(0, both.from)),
    middle && (row.kind === "added" ? <ins>{shown(middle)}</ins> : <del>{shown(middle)}</del>),
    shown(row.text.slice(to)),
  ];
}

function Marked({ line, marks, columns }: { line?: number; marks: Mark[]; columns: number }) {
  const here = line === undefined ? [] : marks.filter((m) => m.line === line);
  return here.length ? (
    <tr class="marks">
      <td colSpan={columns}>
        {here.map((m, i) => (
          <Note key={i} mark={m} />
        ))}
      </td>
    </tr>
  ) : null;
}
