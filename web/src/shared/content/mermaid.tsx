import { useEffect, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button, Copy, Dialog, failed, Icon, Menu, MenuItem, Waiting } from "../ui";
import { dark } from "../ui/theme";
import { Canvas, type Zoom } from "./canvas";
import { Code } from "./code";
import type { Drawn } from "./diagram";
import { diagramTitle } from "./phrases";
import { savePNG, saveSVG } from "./saveimage";
import "./content.css";

export type { Drawn };

const known = new Map<string, Promise<Drawn>>();

/** The number of cached drawings. */
const most = 40;

/** renderMermaid draws a diagram with Mermaid in its strict mode. It returns an error with its position. */
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
  /** The name of saved files, without extension. */
  name?: string;
  /** Gets each result, for example to ask a model for a fix. */
  onDrawn?: (drawn: Drawn) => void;
}

/** Mermaid shows a diagram that can be zoomed, and saved as SVG or PNG. */
export function Mermaid({ source, name = "diagram", onDrawn }: MermaidProps) {
  const drawn = useDrawn(source, onDrawn);
  const [plain, setPlain] = useState(false);
  const [full, setFull] = useState(false);
  if (drawn && !("svg" in drawn)) return <Mistake source={source} drawn={drawn} />;
  const view = { source, name, drawn, plain, onPlain: setPlain };
  return (
    <div class="content-diagram">
      {drawn ? <View {...view} onFull={() => setFull(true)} /> : <Waiting for={msg("diagram.drawing")} />}
      {full && (
        <Dialog title={diagramTitle(drawn?.kind ?? "")} wide onClose={() => setFull(false)}>
          <div class="content-full">
            <View {...view} whole />
          </div>
        </Dialog>
      )}
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
  /** Fills the available space. */
  whole?: boolean;
}

const between = (zoom: number) => Math.min(8, Math.max(0.1, zoom));

/** View shows the diagram or its source, with the buttons. */
function View({ source, name, drawn, plain, onPlain, onFull, whole }: ViewProps) {
  const [zoom, setZoom] = useState<Zoom>(whole ? "whole" : "width");
  const [scale, setScale] = useState(1);
  const by = (factor: number) => setZoom(between(scale * factor));
  if (!drawn) return null;
  return (
    <>
      <div class="head">
        <span class="grow truncate">{!whole && diagramTitle(drawn.kind)}</span>
        {!plain && (
          <>
            <Button small look="quiet" label={msg("diagram.zoomOut")} onClick={() => by(1 / 1.25)}>
              <span aria-hidden="true">−</span>
            </Button>
            <span class="at" aria-live="polite">
              {msg("diagram.at", { percent: Math.round(scale * 100) })}
            </span>
            <Button small look="quiet" icon="plus" label={msg("diagram.zoomIn")} onClick={() => by(1.25)} />
            <Button small look="quiet" onClick={() => setZoom("whole")}>
              {msg("diagram.fit")}
            </Button>
            {onFull && <Button small look="quiet" icon="zoom" label={msg("diagram.full")} onClick={onFull} />}
          </>
        )}
        <Button
          small
          look="quiet"
          icon={plain ? "eye" : "compose"}
          label={plain ? msg("diagram.picture") : msg("diagram.source")}
          aria-pressed={plain}
          onClick={() => onPlain(!plain)}
        />
        <Menu small icon="download" label={msg("diagram.save")}>
          <MenuItem onClick={() => saveSVG(drawn.svg, name)}>{msg("diagram.svg")}</MenuItem>
          <MenuItem onClick={() => void savePNG(drawn.svg, name).catch(failed)}>{msg("diagram.png")}</MenuItem>
        </Menu>
      </div>
      {plain ? (
        <div class="source">
          <Code text={source} language="mermaid" head wrap />
        </div>
      ) : (
        <Canvas
          {...drawn}
          zoom={zoom}
          whole={whole}
          onZoom={(z) => setZoom(typeof z === "number" ? between(z) : z)}
          onScale={setScale}
        />
      )}
    </>
  );
}

/** Mistake shows the error of a diagram at its line. */
function Mistake({ source, drawn }: { source: string; drawn: { message: string; line?: number; column?: number } }) {
  return (
    <div class="content-diagram mistake">
      <div class="head">
        <Icon name="warn" size={16} />
        <span class="grow">{msg("diagram.mistake")}</span>
        <Copy text={source} />
      </div>
      <Code
        text={source}
        language="mermaid"
        numbers
        label={msg("diagram.mistake")}
        height="24rem"
        marks={[
          {
            line: drawn.line ?? source.trimEnd().split("\n").length,
            level: "bad",
            say: <pre class="why">{drawn.message}</pre>,
          },
        ]}
      />
    </div>
  );
}
