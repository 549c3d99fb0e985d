import { useEffect, useState } from "preact/hooks";
import { dark } from "../shell/theme";
import { Button, Copy, Dialog, failed, Icon, Menu, MenuItem, Waiting } from "../ui";
import { Canvas, type Zoom } from "./canvas";
import { Code } from "./code";
import type { Drawn } from "./diagram";
import { wm } from "./mermaid-words";
import { savePNG, saveSVG } from "./save";
import "./content.css";

export type { Drawn };

const known = new Map<string, Promise<Drawn>>();

/** So many drawings are kept, so that a view which is drawn again has them at once. */
const most = 40;

/** Draws a diagram by Mermaid in its strict mode; a mistake in it is an answer with its place. */
export function renderMermaid(source: string): Promise<Drawn> {
  const key = `${dark.value} ${source}`;
  const before = known.get(key);
  if (before) return before;
  const drawing = import("./diagram").then((d) => d.drawDiagram(source));
  drawing.catch(() => known.delete(key));
  known.set(key, drawing);
  if (known.size > most) known.delete(known.keys().next().value!);
  return drawing;
}

interface MermaidProps {
  source: string;
  /** What the files are named that it is saved as. */
  name?: string;
  /** Told of each drawing, as for asking a model to mend a mistake. */
  onDrawn?: (drawn: Drawn) => void;
}

/** A diagram that is zoomed and saved as SVG or PNG, in the colours of the page. */
export function Mermaid({ source, name = "diagram", onDrawn }: MermaidProps) {
  const drawn = useDrawn(source, onDrawn);
  const [plain, setPlain] = useState(false);
  const [full, setFull] = useState(false);
  if (drawn && !("svg" in drawn)) return <Mistake source={source} drawn={drawn} />;
  const view = { source, name, drawn, plain, onPlain: setPlain };
  return (
    <div class="content-diagram">
      {drawn ? <View {...view} onFull={() => setFull(true)} /> : <Waiting for={wm().drawing} />}
      {full && <Dialog title={wm().diagram(drawn?.kind ?? "")} wide onClose={() => setFull(false)}><div class="content-full"><View {...view} whole /></div></Dialog>}
    </div>
  );
}

function useDrawn(source: string, onDrawn?: (drawn: Drawn) => void): Drawn | undefined {
  const [drawn, setDrawn] = useState<Drawn>();
  const night = dark.value;
  useEffect(() => {
    let gone = false;
    renderMermaid(source)
      .catch((e: Error): Drawn => ({ message: e.message }))
      .then((d) => {
        if (gone) return;
        setDrawn(d);
        onDrawn?.(d);
      });
    return () => void (gone = true);
  }, [source, night]);
  return drawn;
}

interface ViewProps {
  source: string;
  name: string;
  drawn?: { svg: string; kind: string };
  plain: boolean;
  onPlain: (plain: boolean) => void;
  onFull?: () => void;
  /** Fills the room there is. */
  whole?: boolean;
}

const between = (zoom: number) => Math.min(8, Math.max(0.1, zoom));

/** The diagram or its source, and what is done with it. */
function View({ source, name, drawn, plain, onPlain, onFull, whole }: ViewProps) {
  const t = wm();
  const [zoom, setZoom] = useState<Zoom>(whole ? "whole" : "width");
  const [scale, setScale] = useState(1);
  const by = (factor: number) => setZoom(between(scale * factor));
  if (!drawn) return null;
  return (
    <>
      <div class="head">
        <span class="grow truncate">{!whole && t.diagram(drawn.kind)}</span>
        {!plain && (
          <>
            <Button small look="quiet" label={t.zoomOut} onClick={() => by(1 / 1.25)}><span aria-hidden="true">−</span></Button>
            <span class="at" aria-live="polite">{t.at(Math.round(scale * 100))}</span>
            <Button small look="quiet" icon="plus" label={t.zoomIn} onClick={() => by(1.25)} />
            <Button small look="quiet" onClick={() => setZoom("whole")}>{t.fit}</Button>
            {onFull && <Button small look="quiet" icon="zoom" label={t.full} onClick={onFull} />}
          </>
        )}
        <Button small look="quiet" icon={plain ? "eye" : "compose"} label={plain ? t.picture : t.source} aria-pressed={plain} onClick={() => onPlain(!plain)} />
        <Menu small icon="download" label={t.save}>
          <MenuItem onClick={() => saveSVG(drawn.svg, name)}>{t.svg}</MenuItem>
          <MenuItem onClick={() => void savePNG(drawn.svg, name).catch(failed)}>{t.png}</MenuItem>
        </Menu>
      </div>
      {plain ? <div class="source"><Code text={source} language="mermaid" head wrap /></div> : <Canvas {...drawn} zoom={zoom} whole={whole} onZoom={(z) => setZoom(typeof z === "number" ? between(z) : z)} onScale={setScale} />}
    </>
  );
}

/** What is wrong with a diagram, at the line of its source. */
function Mistake({ source, drawn }: { source: string; drawn: { message: string; line?: number; column?: number } }) {
  return (
    <div class="content-diagram mistake">
      <div class="head"><Icon name="warn" size={16} /><span class="grow">{wm().mistake}</span><Copy text={source} /></div>
      <Code text={source} language="mermaid" numbers label={wm().mistake} height="24rem" marks={[{ line: drawn.line ?? source.trimEnd().split("\n").length, level: "bad", say: <pre class="why">{drawn.message}</pre> }]} />
    </div>
  );
}
