import mermaid from "mermaid";
import { msg } from "../i18n/messages";
import { dark } from "../ui/theme";
import { paint } from "./diagramcolours";
import { placeIn } from "./errorposition";
import { guardDrawing } from "./guard";
import { linkTarget } from "./links";
import { newPurifier } from "./purify";

/** The result of drawing a diagram. */
export type Drawn = { svg: string; kind: string } | { message: string; line?: number; column?: number };

/** The limits on a diagram, also given to Mermaid. */
const mostText = 50_000;
const mostEdges = 500;
const longest = 10_000;

/** drawDiagram draws a diagram with Mermaid in its strict mode. It returns an error with its position. */
export async function drawDiagram(source: string): Promise<Drawn> {
  if (!source.trim()) return { message: msg("diagram.empty") };
  if (source.length > mostText) return { message: msg("diagram.large", { count: source.length, most: mostText }) };
  const picture = /@\{[^}]*\bimg["']?\s*:/.exec(source);
  if (picture) return { message: msg("diagram.image"), line: source.slice(0, picture.index).split("\n").length };
  const box = document.createElement("div");
  box.className = "content-drawing";
  box.ariaHidden = "true";
  document.body.append(box);
  let timer = 0;
  try {
    guardDrawing();
    settle();
    const late = new Promise<never>(
      (_, no) =>
        (timer = window.setTimeout(() => no(new Error(msg("diagram.slow", { count: longest / 1000 }))), longest)),
    );
    const { svg, diagramType } = await Promise.race([mermaid.render(`diagram-${++drawn}`, source, box), late]);
    return { svg: clean(svg), kind: diagramType.replace(/(-v2|-beta|Diagram|Chart)$/, "") };
  } catch (error) {
    return placeIn(source, error);
  } finally {
    clearTimeout(timer);
    box.remove();
  }
}

let drawn = 0;

/** settle configures Mermaid for the page. A diagram cannot change these settings. */
function settle() {
  const colours = paint();
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    maxTextSize: mostText,
    maxEdges: mostEdges,
    htmlLabels: false,
    logLevel: "fatal",
    secure: [
      "secure",
      "securityLevel",
      "startOnLoad",
      "maxTextSize",
      "suppressErrorRendering",
      "maxEdges",
      "htmlLabels",
      "themeCSS",
      "fontFamily",
      "altFontFamily",
      "dompurifyConfig",
      "logLevel",
      "arrowMarkerAbsolute",
    ],
    flowchart: { htmlLabels: false },
    class: { htmlLabels: false },
    journey: { textPlacement: "tspan" },
    themeCSS: `text.journey-section, text.task { fill: ${colours.textColor}; } .mindmap-node > circle ~ .label text { text-anchor: middle; }`, // the defaults assume HTML labels
    theme: "base",
    darkMode: dark.value,
    fontFamily: colours.fontFamily,
    themeVariables: colours,
  });
}

const purify = newPurifier();
purify.addHook("afterSanitizeAttributes", (node) => {
  for (const { name, value } of [...node.attributes]) if (/url\(\s*(?!["']?#)/i.test(value)) node.removeAttribute(name);
  if (node.localName === "style")
    node.textContent = (node.textContent ?? "")
      .replace(/@import[^;]*;?/gi, "")
      .replace(/url\(\s*(?!["']?#)[^)]*\)/gi, "none");
  for (const name of ["href", "xlink:href"]) {
    const to = node.getAttribute(name);
    if (to === null || (to.startsWith("#") && node.localName !== "a")) continue;
    const out = node.localName === "a" ? linkTarget(to) : undefined;
    if (out?.to !== "out") node.removeAttribute(name);
    else {
      node.setAttribute(name, out.href);
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
  }
});

/** clean removes scripts, HTML and external references from a drawing. */
function clean(svg: string): string {
  const body = purify.sanitize(svg, {
    USE_PROFILES: { svg: true, svgFilters: true },
    ADD_ATTR: ["target"],
    FORBID_TAGS: ["foreignobject", "image", "feimage"],
    RETURN_DOM: true,
  }) as HTMLElement;
  const root = body.querySelector("svg");
  if (!root) throw new Error(msg("diagram.nothing"));
  root.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(root);
}
