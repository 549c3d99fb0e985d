import { useEffect, useState } from "preact/hooks";
import { same, type Doc } from "./document";

/** What is being written and not saved, by the page that it is on: it outlives a look at another page. */
const kept = new Map<string, { doc: Doc; made?: number }>();

/** A document that is being changed. */
export interface Draft {
  doc: Doc;
  dirty: boolean;
  /** The generation that it was made from; not there for what is new. */
  made?: number;
  set: (doc: Doc) => void;
  /** Change some of the spec; undefined takes a field out. */
  spec: (change: object) => void;
  /** Change some of the metadata. */
  meta: (change: Partial<Doc["metadata"]>) => void;
  /** Go back to how it is kept. */
  drop: () => void;
}

/** The draft of the document at an address, which begins as it is kept, in a generation. */
export function useDraft(key: string, base: Doc, generation?: number): Draft {
  const [, redraw] = useState({});
  const { doc, made } = kept.get(key) ?? { doc: base, made: generation };
  const dirty = !same(doc, base);
  const set = (to: Doc) => {
    if (same(to, base)) kept.delete(key);
    else kept.set(key, { doc: to, made });
    redraw({});
  };
  useEffect(() => {
    if (!dirty) return;
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  return {
    doc, dirty, made, set,
    spec: (change) => set({ ...doc, spec: { ...doc.spec, ...change } }),
    meta: (change) => set({ ...doc, metadata: { ...doc.metadata, ...change } }),
    drop: () => {
      kept.delete(key);
      redraw({});
    },
  };
}
