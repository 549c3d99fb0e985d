import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { diagramTitle } from "./phrases";
import { sized } from "./saveimage";

/** A factor, "width" to fit the width, or "whole" to fit everything without enlarging it. */
export type Zoom = number | "width" | "whole";

interface CanvasProps {
  svg: string;
  kind: string;
  zoom: Zoom;
  onZoom: (zoom: Zoom) => void;
  /** Gets the current scale. */
  onScale: (scale: number) => void;
  whole?: boolean;
}

/** Canvas shows a drawing that scrolls and zooms by keyboard, wheel, touch and dragging. */
export function Canvas({ svg, kind, zoom, onZoom, onScale, whole }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const drawing = useMemo(() => sized(svg), [svg]);
  const { width, height } = drawing;
  const place = usePlace(box, !!whole);
  const fit = Math.min(1, place.width / width);
  const scale = zoom === "width" ? fit : zoom === "whole" ? Math.min(fit, place.height / height) : zoom;
  useEffect(() => onScale(scale), [scale]);
  useWheel(box, scale, onZoom);
  const key = (e: KeyboardEvent) => {
    const to = { "+": scale * 1.25, "=": scale * 1.25, "-": scale / 1.25, "0": "whole" as const }[e.key];
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    onZoom(to);
  };
  return (
    <div
      ref={box}
      class={whole ? "canvas whole" : "canvas"}
      tabIndex={0}
      role="region"
      aria-label={`${diagramTitle(kind)}. ${msg("diagram.hint")}`}
      onKeyDown={key}
      onPointerDown={drag}
    >
      <div class="sheet" style={{ width: `${width * scale}px`, height: `${height * scale}px` }}>
        <Sheet svg={drawing.svg} kind={kind} />
      </div>
    </div>
  );
}

/** Sheet shows the drawing in a shadow tree, so that its styles stay inside. */
function Sheet({ svg, kind }: { svg: SVGSVGElement; kind: string }) {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const own = document.importNode(svg, true);
    own.setAttribute("width", "100%");
    own.setAttribute("height", "100%");
    own.setAttribute("style", "display: block");
    own.setAttribute("role", "img");
    if (!own.hasAttribute("aria-labelledby"))
      own.setAttribute("aria-label", own.querySelector("title")?.textContent || diagramTitle(kind));
    root.replaceChildren(own);
  }, [svg]);
  return <div ref={host} class="drawing" />;
}

function usePlace(box: { current: HTMLDivElement | null }, whole: boolean) {
  const [place, setPlace] = useState({ width: 600, height: 400 });
  useLayoutEffect(() => {
    const look = () => {
      const style = getComputedStyle(box.current!);
      const pad = parseFloat(style.paddingLeft) * 2;
      const most = whole ? box.current!.clientHeight : parseFloat(style.maxHeight) || 400;
      setPlace({ width: box.current!.clientWidth - pad, height: most - pad });
    };
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [whole]);
  return place;
}

/** useWheel zooms with Ctrl and the wheel, or with a pinch. The wheel alone scrolls. */
function useWheel(box: { current: HTMLDivElement | null }, scale: number, onZoom: (zoom: Zoom) => void) {
  useEffect(() => {
    const wheel = (e: WheelEvent) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      onZoom(scale * Math.exp(-e.deltaY / 300));
    };
    const at = box.current!;
    at.addEventListener("wheel", wheel, { passive: false });
    return () => at.removeEventListener("wheel", wheel);
  }, [scale, onZoom]);
}

/** drag moves the drawing with the mouse. Touch scrolls natively. */
function drag(e: PointerEvent & { currentTarget: HTMLDivElement }) {
  if (e.pointerType !== "mouse" || e.button !== 0) return;
  const at = e.currentTarget;
  const from = { x: e.clientX + at.scrollLeft, y: e.clientY + at.scrollTop };
  const move = (m: PointerEvent) => at.scrollTo(from.x - m.clientX, from.y - m.clientY);
  const end = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", end);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end);
}
