import { useEffect, useState } from "preact/hooks";
import { same, type Doc } from "./document";

/** The unsaved drafts by page. They survive a visit to another page. */
const unsavedEdits = new Map<string, { doc: Doc; made?: number }>();

/** A document that the user edits. */
export interface Draft {
  doc: Doc;
  dirty: boolean;
  /** The generation of the saved document, undefined for a new one. */
  made?: number;
  set: (doc: Doc) => void;
  /** Changes the spec. The value undefined removes a field. */
  spec: (change: object) => void;
  /** Changes the metadata. */
  meta: (change: Partial<Doc["metadata"]>) => void;
  /** Discards the changes. */
  drop: () => void;
}

/** useDraft returns the draft at an address. It starts from the saved document. */
export function useDraft(key: string, base: Doc, generation?: number): Draft {
  const [, redraw] = useState({});
  const { doc, made } = unsavedEdits.get(key) ?? { doc: base, made: generation };
  const dirty = !same(doc, base);
  const set = (to: Doc) => {
    if (same(to, base)) unsavedEdits.delete(key);
    else unsavedEdits.set(key, { doc: to, made });
    redraw({});
  };
  useEffect(() => {
    if (!dirty) return;
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  return {
    doc,
    dirty,
    made,
    set,
    spec: (change) => set({ ...doc, spec: { ...doc.spec, ...change } }),
    meta: (change) => set({ ...doc, metadata: { ...doc.metadata, ...change } }),
    drop: () => {
      unsavedEdits.delete(key);
      redraw({});
    },
  };
}
