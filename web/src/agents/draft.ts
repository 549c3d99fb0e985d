import { useEffect, useState } from "preact/hooks";
import { same, type Doc } from "./document";

/** What is being written and not saved, by the page that it is on: it outlives a look at another page. */
const kept = new Map<string, Doc>();

/** A document that is being changed. */
export interface Draft {
  doc: Doc;
  dirty: boolean;
  set: (doc: Doc) => void;
  /** Change some of the spec; undefined takes a field out. */
  spec: (change: object) => void;
  /** Change some of the metadata. */
  meta: (change: Partial<Doc["metadata"]>) => void;
  /** Go back to how it is kept. */
  drop: () => void;
}

/** The draft of the document at an address, which begins as it is kept. */
export function useDraft(key: string, base: Doc): Draft {
  const [, redraw] = useState({});
  const doc = kept.get(key) ?? base;
  const dirty = !same(doc, base);
  const set = (to: Doc) => {
    if (same(to, base)) kept.delete(key);
    else kept.set(key, to);
    redraw({});
  };
  useEffect(() => {
    if (!dirty) return;
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  return {
    doc, dirty, set,
    spec: (change) => set({ ...doc, spec: { ...doc.spec, ...change } }),
    meta: (change) => set({ ...doc, metadata: { ...doc.metadata, ...change } }),
    drop: () => {
      kept.delete(key);
      redraw({});
    },
  };
}
