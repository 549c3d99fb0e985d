import katex from "katex";
import "katex/dist/katex.min.css";
import { showHiddenCharacters } from "./visibletext";

/** The limits on a drawn formula. Deeper elements are slow to lay out. */
const mostElements = 20_000;
const deepest = 200;

/** These define macros, whose expansion takes KaTeX seconds within its own limit. */
const definition = /\\(def|[gex]def|let|futurelet|(re)?newcommand|providecommand)(?![a-zA-Z])/;

/**
 * typeset draws a formula with KaTeX: in HTML for the eye and in MathML for screen readers. KaTeX
 * creates the elements without parsing HTML. It returns undefined for a formula that is wrong or
 * too large, or that has hidden characters.
 */
export function typeset(tex: string, display: boolean): HTMLElement | undefined {
  if (definition.test(tex) || showHiddenCharacters(tex) !== tex) return undefined;
  const box = document.createElement("span");
  try {
    katex.render(tex, box, { displayMode: display, trust: false, strict: "ignore", maxSize: 20, maxExpand: 1000 });
  } catch {
    return undefined; // KaTeX throws for wrong TeX, and the browser for too deep recursion
  }
  return isSmall(box) ? box : undefined;
}

function isSmall(box: HTMLElement): boolean {
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_ELEMENT);
  let count = 0;
  for (let depth = 0; ;) {
    if (++count > mostElements || depth > deepest) return false;
    if (walker.firstChild()) depth++;
    else {
      while (!walker.nextSibling()) {
        if (depth-- === 0 || !walker.parentNode()) return true;
      }
    }
  }
}
