import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { deleteDraft, storeDraft, keepRequests, requestsOf, type StoredDraft } from "./drafts";
import { skillFile, type DraftFile } from "./files";
import { findFrontmatter } from "./frontmatter";

/** The initial state of a draft. */
export interface Start {
  key: string;
  /** The skill that gets a new version. */
  of?: Schema["SkillDetail"];
  /** The version that the draft is based on. */
  base?: number;
  /** The version of the saved files. */
  opened?: number;
  /** The newest version of the skill when it was opened. */
  newest?: Schema["SkillVersion"];
  /** The saved files. For a new skill, the files of the template. */
  saved: DraftFile[];
  /** An earlier draft of the browser. */
  storedDraft?: StoredDraft;
}

/** A draft of a skill. */
export interface Work extends Start {
  files: DraftFile[];
  name: string;
  /** Whether there are unsaved changes. */
  changed: boolean;
  /** Whether the draft survives a reload. */
  safe: boolean;
  namespace?: string;
  place: (namespace: string | undefined) => void;
  requests: string;
  setRequests: (text: string) => void;
  /** The text of SKILL.md. */
  skill: string;
  write: (path: string, text: string) => void;
  change: (how: (files: DraftFile[]) => DraftFile[]) => void;
  /** Marks the draft as saved. */
  markSaved: () => void;
}

const byPath = (a: DraftFile, b: DraftFile) => (a.path < b.path ? -1 : 1);

/** same reports whether two lists of files are equal. */
function same(a: DraftFile[], b: DraftFile[]): boolean {
  if (a.length !== b.length) return false;
  const others = new Map(b.map((f) => [f.path, f]));
  return a.every((f) => {
    const o = others.get(f.path);
    return o === f || (o !== undefined && o.text === f.text && o.base64 === f.base64);
  });
}

/** useWork holds a draft. It stores the draft shortly after each change, and when the user leaves. */
export function useWork(start: Start): Work {
  const [files, setFiles] = useState(() => [...(start.storedDraft?.files ?? start.saved)].sort(byPath));
  const [namespace, place] = useState(start.storedDraft?.namespace);
  const [requests, setText] = useState(() => requestsOf(start.key));
  const [safe, setSafe] = useState(true);
  const saved = useRef(false);
  const changed = useMemo(() => (!start.of && start.storedDraft?.touched) || !same(files, start.saved), [files, start]);
  const skill = files.find((f) => f.path === skillFile)?.text ?? "";
  const name = nameIn(skill) || start.of?.name || "";
  const latest = useRef<StoredDraft>(undefined);
  latest.current = {
    key: start.key,
    of: start.of?.id,
    base: start.base,
    name,
    at: new Date().toISOString(),
    files,
    namespace,
    touched: changed,
  };
  const stored = useRef(!!start.storedDraft);
  /** flush stores the draft, or deletes it if the user undid all changes. */
  const flush = () => {
    if (saved.current || !latest.current) return;
    if (latest.current.touched) setSafe(storeDraft(latest.current));
    else if (stored.current) deleteDraft(start.key);
    stored.current = latest.current.touched;
  };
  useEffect(() => {
    const timer = setTimeout(flush, 500);
    addEventListener("pagehide", flush);
    return () => {
      clearTimeout(timer);
      removeEventListener("pagehide", flush);
    };
  }, [files, namespace]);
  useEffect(() => flush, []);
  useGuard(changed, saved);
  const change = (how: (files: DraftFile[]) => DraftFile[]) => setFiles((was) => how(was).sort(byPath));
  return {
    ...start,
    files,
    name,
    changed,
    safe,
    namespace,
    place,
    requests,
    skill,
    change,
    setRequests: (text) => {
      setText(text);
      keepRequests(start.key, text);
    },
    write: (path, text) =>
      change((was) =>
        was.some((f) => f.path === path)
          ? was.map((f) => (f.path === path ? { path, text } : f))
          : [...was, { path, text }],
      ),
    markSaved: () => void (saved.current = true),
  };
}

/** nameIn returns the name in a SKILL.md without parsing all of it, for lists and titles. */
export function nameIn(text: string): string {
  const span = findFrontmatter(text);
  if (typeof span === "string") return "";
  return (
    /^name:[ \t]*(["']?)([^\r\n#]*?)\1[ \t]*(?:#.*)?\r?$/m.exec(text.slice(span.start, span.end))?.[2]?.trim() ?? ""
  );
}

/** useGuard makes the browser ask before it closes the page with unsaved changes. */
function useGuard(changed: boolean, saved: { current: boolean }) {
  useEffect(() => {
    if (!changed) return;
    const ask = (e: BeforeUnloadEvent) => {
      if (!saved.current) e.preventDefault();
    };
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [changed]);
}

/** asDraft returns the files in the format of the API. */
export const asDraft = (work: Pick<Work, "of">, files: DraftFile[]): Schema["Draft"] => ({
  files,
  skill_id: work.of?.id,
});
