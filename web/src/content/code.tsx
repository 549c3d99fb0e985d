import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Button, Copy, Icon } from "../ui";
import type { Piece } from "./colours";
import { heavy } from "./heavy";
import { known, title } from "./languages";
import { Scroll } from "./scroll";
import { shown } from "./shown";
import { w } from "./words";
import "./content.css";

/** Something that is said about a line, as a finding of a scan. */
export interface Mark {
  line: number;
  level: "info" | "warn" | "bad";
  /** Stands below the line. */
  say: ComponentChildren;
}

interface CodeProps {
  text: string;
  /** The language by its name, or by the path of the file it is from. */
  language?: string;
  path?: string;
  /** Show numbers of lines. */
  numbers?: boolean;
  marks?: Mark[];
  /** How high it gets before it scrolls, as "24rem"; without it all is shown. */
  height?: string;
  /** A line above it with the language and a button that copies it. */
  head?: boolean;
  /** A line that is shown as the one meant, and scrolled to. */
  line?: number;
  /** Without colours, as while more is on its way. */
  plain?: boolean;
  /** Long lines go on below instead of being scrolled to. */
  wrap?: boolean;
  /** What it is, for who hears the page. */
  label?: string;
}

const useColours = heavy(() => import("./colours"));

/** So many lines are drawn at first: more at once make a page slow. */
const first = 2000;

/** A piece of code with its colours, and what is said about its lines. */
export function Code({ text, language, path, numbers, marks = [], height, head, line, plain, wrap, label }: CodeProps) {
  const lines = useLines(text, plain ? undefined : known(language, path));
  const [most, setMost] = useState(first);
  const name = title(language, path);
  const cut = Math.max(most, line ?? 0);
  return (
    <div class={["content-code", numbers && "numbers", wrap && "wrap"].filter(Boolean).join(" ")} dir="ltr">
      {head && <div class="head"><span>{name || w().code}</span><Copy text={text} /></div>}
      <Scroll label={label ?? (path || name ? w().codeOf(path ?? name) : w().code)} height={height}>
        {parts(lines.slice(0, cut), marks).map((p) => (
          <>
            <Lines key={p.from} lines={p.lines} from={p.from} here={line} />
            {p.marks.map((m, i) => <Said key={`${p.from}-${i}`} mark={m} />)}
          </>
        ))}
        {lines.length > cut && <div class="rest"><Button small onClick={() => setMost(Infinity)}>{w().more(lines.length - cut)}</Button></div>}
      </Scroll>
    </div>
  );
}

/** The lines of a text in pieces: plain, and coloured as soon as that can be. */
function useLines(text: string, language: string | undefined): Piece[][] {
  const colours = useColours(!!language);
  const [learnt, setLearnt] = useState("");
  const can = !!colours && !!language && (learnt === language || colours.ready(language));
  useEffect(() => {
    if (!colours || !language || colours.ready(language)) return;
    let gone = false;
    colours.learn(language).then(() => !gone && setLearnt(language), () => undefined);
    return () => void (gone = true);
  }, [colours, language]);
  return useMemo(() => {
    const body = text.replace(/\r\n?/g, "\n").replace(/\n$/, "");
    return can ? colours.coloured(body, language) : body.split("\n").map((l): Piece[] => [["", l]]);
  }, [text, can, colours, language]);
}

interface Part {
  from: number;
  lines: Piece[][];
  marks: Mark[];
}

/** The lines cut where something is said about one. */
function parts(lines: Piece[][], marks: Mark[]): Part[] {
  const at = [...new Set(marks.map((m) => Math.min(Math.max(m.line, 1), lines.length)))].sort((a, b) => a - b);
  const out: Part[] = [];
  let from = 1;
  for (const line of at) {
    out.push({ from, lines: lines.slice(from - 1, line), marks: marks.filter((m) => Math.min(Math.max(m.line, 1), lines.length) === line) });
    from = line + 1;
  }
  if (from <= lines.length) out.push({ from, lines: lines.slice(from - 1), marks: [] });
  return out;
}

function Lines({ lines, from, here }: { lines: Piece[][]; from: number; here?: number }) {
  return (
    <pre><code>
      {lines.map((pieces, i) => (
        <span key={i} class={from + i === here ? "line here" : "line"} data-line={from + i} ref={from + i === here ? show : undefined}>
          {pieces.map(([kind, text]) => (kind ? <span class={`c-${kind}`}>{shown(text)}</span> : shown(text)))}
          {"\n"}
        </span>
      ))}
    </code></pre>
  );
}

const show = (line: HTMLElement | null) => line?.scrollIntoView({ block: "center" });

const icons = { info: "info", warn: "warn", bad: "warn" } as const;

/** What is said about the line above it. */
export function Said({ mark }: { mark: Mark }) {
  return (
    <div class={`content-mark ${mark.level}`} role="note" aria-label={`${w()[mark.level]}, ${w().line(mark.line)}`}>
      <Icon name={icons[mark.level]} size={16} />
      <div class="grow">{mark.say}</div>
    </div>
  );
}
