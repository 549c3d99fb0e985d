import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button, Copy, Icon } from "../ui";
import type { Piece } from "./colours";
import { known, title } from "./languages";
import { lazyModule } from "./lazyload";
import { Scroll } from "./scrollbox";
import { showHiddenCharacters } from "./visibletext";
import "./content.css";

/** A note about a line, such as a finding. */
export interface Mark {
  line: number;
  level: "info" | "warn" | "bad";
  /** The content below the line. */
  say: ComponentChildren;
}

interface CodeProps {
  text: string;
  /** The language by name, or by the path of its file. */
  language?: string;
  path?: string;
  /** Shows line numbers. */
  numbers?: boolean;
  marks?: Mark[];
  /** The height limit, such as "24rem". Without it, all lines are shown. */
  height?: string;
  /** Shows a header with the language and a copy button. */
  head?: boolean;
  /** A line to highlight and scroll to. */
  line?: number;
  /** Disables colors, for example while the text grows. */
  plain?: boolean;
  /** Wraps long lines. */
  wrap?: boolean;
  /** The label for screen readers. */
  label?: string;
  /** Offers to show an HTML document or an SVG image instead of its code. */
  preview?: boolean;
}

const usePreview = lazyModule(() => import("./preview"));

/** previewKind returns how a text is previewed, if it can be. */
function previewKind(language = "", path = ""): "html" | "svg" | undefined {
  const [, kind] = /(?:^|\.)(html?|svg)$/i.exec(language || path) ?? [];
  return kind ? (/svg/i.test(kind) ? "svg" : "html") : undefined;
}

const useColours = lazyModule(() => import("./colours"));

/** The number of lines that are drawn at first, because more are slow. */
const first = 2000;

/** Code shows code with colors and notes about its lines. */
export function Code(props: CodeProps) {
  const { text, language, path, numbers, marks = [], height, head, line, plain, wrap, label, preview } = props;
  const lines = useLines(text, plain ? undefined : known(language, path));
  const [most, setMost] = useState(first);
  const name = title(language, path);
  const cut = Math.max(most, line ?? 0);
  const kind = preview ? previewKind(language, path) : undefined;
  const [seen, setSeen] = useState(false);
  const part = usePreview(!!kind && seen);
  return (
    <div class={["content-code", numbers && "numbers", wrap && "wrap"].filter(Boolean).join(" ")} dir="ltr">
      {(head || kind) && (
        <div class="head">
          <span class="grow">{name || msg("content.code")}</span>
          {kind && (
            <div class="row keep" role="group" aria-label={msg("preview.view")}>
              <Button small look="quiet" aria-pressed={!seen} onClick={() => setSeen(false)}>
                {msg("content.code")}
              </Button>
              <Button small look="quiet" aria-pressed={seen} onClick={() => setSeen(true)}>
                {msg("preview.preview")}
              </Button>
            </div>
          )}
          <Copy text={text} />
        </div>
      )}
      {kind && seen && part && <part.default text={text} kind={kind} name={path ?? name} />}
      {!(kind && seen && part) && (
        <Scroll
          label={label ?? (path || name ? msg("content.codeOf", { what: path ?? name }) : msg("content.code"))}
          height={height}
        >
          {parts(lines.slice(0, cut), marks).map((p) => (
            <>
              <Lines key={p.from} lines={p.lines} from={p.from} here={line} />
              {p.marks.map((m, i) => (
                <Note key={`${p.from}-${i}`} mark={m} />
              ))}
            </>
          ))}
          {lines.length > cut && (
            <div class="rest">
              <Button small onClick={() => setMost(Infinity)}>
                {msg("content.more", { count: lines.length - cut })}
              </Button>
            </div>
          )}
        </Scroll>
      )}
    </div>
  );
}

/** useLines returns the lines in colored pieces, plain until the grammar is loaded. */
function useLines(text: string, language: string | undefined): Piece[][] {
  const colour = useColour(language);
  return useMemo(() => {
    const body = text.replace(/\r\n?/g, "\n").replace(/\n$/, "");
    return colour ? colour(body) : body.split("\n").map((l): Piece[] => [["", l]]);
  }, [text, colour]);
}

/** useColour returns a function that colors the lines of a text, undefined until the grammar is loaded. */
export function useColour(language: string | undefined): ((text: string) => Piece[][]) | undefined {
  const colours = useColours(!!language);
  const [learnt, setLearnt] = useState("");
  const can = !!colours && !!language && (learnt === language || colours.ready(language));
  useEffect(() => {
    if (!colours || !language || colours.ready(language)) return;
    let gone = false;
    colours.loadGrammars(language).then(
      () => !gone && setLearnt(language),
      () => undefined,
    );
    return () => void (gone = true);
  }, [colours, language]);
  return useMemo(
    () => (can ? (text: string) => colours.highlightLines(text, language) : undefined),
    [can, colours, language],
  );
}

/** drawPieces draws colored pieces of a line. */
export const drawPieces = (pieces: Piece[]) =>
  pieces.map(([kind, text]) =>
    kind ? <span class={`c-${kind}`}>{showHiddenCharacters(text)}</span> : showHiddenCharacters(text),
  );

interface Part {
  from: number;
  lines: Piece[][];
  marks: Mark[];
}

/** parts splits the lines after each line with a note. */
function parts(lines: Piece[][], marks: Mark[]): Part[] {
  const at = [...new Set(marks.map((m) => Math.min(Math.max(m.line, 1), lines.length)))].sort((a, b) => a - b);
  const out: Part[] = [];
  let from = 1;
  for (const line of at) {
    out.push({
      from,
      lines: lines.slice(from - 1, line),
      marks: marks.filter((m) => Math.min(Math.max(m.line, 1), lines.length) === line),
    });
    from = line + 1;
  }
  if (from <= lines.length) out.push({ from, lines: lines.slice(from - 1), marks: [] });
  return out;
}

function Lines({ lines, from, here }: { lines: Piece[][]; from: number; here?: number }) {
  return (
    <pre>
      <code>
        {lines.map((pieces, i) => (
          <span
            key={i}
            class={from + i === here ? "line here" : "line"}
            data-line={from + i}
            ref={from + i === here ? show : undefined}
          >
            {drawPieces(pieces)}
            {"\n"}
          </span>
        ))}
      </code>
    </pre>
  );
}

const show = (line: HTMLElement | null) => line?.scrollIntoView({ block: "center" });

const icons = { info: "info", warn: "warn", bad: "warn" } as const;

/** Note shows a note about the line above. */
export function Note({ mark }: { mark: Mark }) {
  return (
    <div
      class={`content-mark ${mark.level}`}
      role="note"
      aria-label={`${msg(`content.${mark.level}`)}, ${msg("content.line", { n: mark.line })}`}
    >
      <Icon name={icons[mark.level]} size={16} />
      <div class="grow">{mark.say}</div>
    </div>
  );
}
