import createPurifier from "dompurify";

/*
 * This module replaces DOMPurify in the whole page, also for Mermaid. It parses markup in the
 * window of a removed frame. A document of the page's own window is inert as well, but there
 * Chromium reports each event handler in the markup as a breach of the page's policy.
 */

const inert = detachedWindow();

/** The instance that Mermaid imports. */
export default createPurifier(inert);

/** newPurifier returns another instance, whose hooks do not affect Mermaid's labels. */
export const newPurifier = () => createPurifier(inert);

/** detachedWindow returns the constructors that DOMPurify needs, from a frame without a view. */
function detachedWindow(): Window & typeof globalThis {
  const frame = document.createElement("iframe");
  document.documentElement.append(frame);
  const view = frame.contentWindow as Window & typeof globalThis;
  const { document: inert, Element, HTMLTemplateElement, Node, NodeFilter } = view;
  const parser = new view.DOMParser();
  frame.remove();
  // A removed frame cannot create a parser, but an existing parser still works.
  const DOMParser = function () {
    return parser;
  };
  return { document: inert, Element, HTMLTemplateElement, Node, NodeFilter, DOMParser } as unknown as Window &
    typeof globalThis;
}
