import { useEffect, useState } from "preact/hooks";
import type { Agent } from "../../features/resources/agents";
import type { Doc, GhostSpec } from "../../features/resources/document";
import type { Draft } from "../../features/resources/draft";
import { inputOf, isSame, newInput, type AgentInput } from "./form";

/** The unsaved inputs by page, with the agents that they change. They survive a visit to another page. */
const unsaved = new Map<string, { input: AgentInput; saved?: Agent }>();

/** An agent that the user edits. */
export interface InputState {
  input: AgentInput;
  /** The saved agent when the user began to edit it. */
  saved?: Agent;
  dirty: boolean;
  change: (change: Partial<AgentInput>) => void;
  drop: () => void;
  /** The document with the instructions, for the parts of the form that edit a document. */
  ghost: Draft;
}

/** useInput returns the input for an agent, or for a new one. */
export function useInput(key: string, now?: Agent): InputState {
  const [, redraw] = useState({});
  const kept = unsaved.get(key);
  const saved = kept ? kept.saved : now;
  const base = saved ? inputOf(saved) : newInput();
  const input = kept?.input ?? base;
  const dirty = !isSame(input, base);
  const set = (to: AgentInput) => {
    if (isSame(to, base)) unsaved.delete(key);
    else unsaved.set(key, { input: to, saved });
    redraw({});
  };
  useEffect(() => {
    if (!dirty) return;
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  const drop = () => {
    unsaved.delete(key);
    redraw({});
  };
  const change = (change: Partial<AgentInput>) => set({ ...(unsaved.get(key)?.input ?? base), ...change });
  const doc = (to: Doc) => change({ ghost: to as Doc<GhostSpec> });
  const ghost: Draft = {
    doc: input.ghost,
    dirty,
    made: saved?.ghost?.status.generation,
    set: doc,
    spec: (change) => {
      const now = unsaved.get(key)?.input.ghost ?? input.ghost;
      doc({ ...now, spec: { ...now.spec, ...change } });
    },
    meta: (change) => {
      const now = unsaved.get(key)?.input.ghost ?? input.ghost;
      doc({ ...now, metadata: { ...now.metadata, ...change } });
    },
    drop,
  };
  return { input, saved, dirty, change, drop, ghost };
}
