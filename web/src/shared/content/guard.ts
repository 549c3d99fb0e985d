import { selection } from "d3-selection";
import purify from "./purify";

/**
 * guardDrawing protects the document from Mermaid's drawings. Mermaid writes to the live document,
 * because text can be measured only there. It writes through d3: once guarded, d3 sets no event
 * handlers and cleans markup before the browser parses it.
 */
export function guardDrawing(): void {
  if (guarded) return;
  guarded = true;
  const { attr, html } = selection.prototype;
  selection.prototype.attr = function (this: typeof selection.prototype, name: string, ...value: [never]) {
    return value.length && /^on/i.test(name) ? this : attr.call(this, name, ...value);
  } as typeof attr;
  selection.prototype.html = function (this: typeof selection.prototype, ...value: [unknown]) {
    if (typeof value[0] === "string") return html.call(this, cleanMarkup(value[0], this.node()));
    return html.apply(this, value as never);
  } as typeof html;
}

let guarded = false;

/** cleanMarkup removes everything that runs or loads from the markup for an element. */
function cleanMarkup(markup: string, parent: unknown): string {
  if (!(parent instanceof SVGElement) || parent.localName === "foreignObject") return purify.sanitize(markup);
  return purify.sanitize(`<svg>${markup}</svg>`, { RETURN_DOM_FRAGMENT: true }).querySelector("svg")?.innerHTML ?? "";
}
