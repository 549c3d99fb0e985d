import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Schema } from "../api/client";
import { skillFile, type DraftFile } from "./files";
import { cut } from "./frontmatter";
import { keep, keepRequests, requestsOf, type Kept } from "./kept";

/** What work begins with. */
export interface Start {
  key: string;
  /** The skill that it is to be a version of. */
  of?: Schema["SkillDetail"];
  /** The number of the version that it began with. */
  base?: number;
  /** What is saved on the hub; of a new skill what it begins with. */
  saved: DraftFile[];
  /** What was kept of earlier work. */
  kept?: Kept;
}

/** A skill that is being written. */
export interface Work extends Start {
  files: DraftFile[];
  name: string;
  /** Whether there is something that is not saved on the hub. */
  changed: boolean;
  /** Whether it would be there after a reload. */
  safe: boolean;
  namespace?: string;
  place: (namespace: string | undefined) => void;
  requests: string;
  setRequests: (text: string) => void;
  /** The text of SKILL.md. */
  skill: string;
  write: (path: string, text: string) => void;
  change: (how: (files: DraftFile[]) => DraftFile[]) => void;
  /** Say that all is saved, so that nothing is kept or asked any more. */
  settle: () => void;
}

const byPath = (a: DraftFile, b: DraftFile) => (a.path < b.path ? -1 : 1);

/** Whether two sets of files are the same. */
function same(a: DraftFile[], b: DraftFile[]): boolean {
  if (a.length !== b.length) return false;
  const others = new Map(b.map((f) => [f.path, f]));
  return a.every((f) => {
    const o = others.get(f.path);
    return o === f || (o !== undefined && o.text === f.text && o.base64 === f.base64);
  });
}

/** The work on a skill. It is kept in the browser a moment after each change, and when one leaves. */
export function useWork(start: Start): Work {
  const [files, setFiles] = useState(() => [...(start.kept?.files ?? start.saved)].sort(byPath));
  const [namespace, place] = useState(start.kept?.namespace);
  const [requests, setText] = useState(() => requestsOf(start.key));
  const [safe, setSafe] = useState(true);
  const settled = useRef(false);
  const changed = useMemo(() => (!start.of && start.kept?.touched) || !same(files, start.saved), [files, start]);
  const skill = files.find((f) => f.path === skillFile)?.text ?? "";
  const name = nameIn(skill) || start.of?.name || "";
  const latest = useRef<Kept>(undefined);
  latest.current = { key: start.key, of: start.of?.id, base: start.base, name, at: new Date().toISOString(), files, namespace, touched: changed };
  useEffect(() => {
    const flush = () => !settled.current && latest.current?.touched && setSafe(keep(latest.current));
    const timer = setTimeout(flush, 500);
    addEventListener("pagehide", flush);
    return () => {
      clearTimeout(timer);
      removeEventListener("pagehide", flush);
    };
  }, [files, namespace]);
  useEffect(() => () => void (!settled.current && latest.current?.touched && keep(latest.current)), []);
  useGuard(changed, settled);
  const change = (how: (files: DraftFile[]) => DraftFile[]) => setFiles((was) => how(was).sort(byPath));
  return {
    ...start, files, name, changed, safe, namespace, place, requests, skill, change,
    setRequests: (text) => {
      setText(text);
      keepRequests(start.key, text);
    },
    write: (path, text) => change((was) => (was.some((f) => f.path === path) ? was.map((f) => (f.path === path ? { path, text } : f)) : [...was, { path, text }])),
    settle: () => void (settled.current = true),
  };
}

/** The name that a SKILL.md gives, without reading all of it: for lists and titles. */
export function nameIn(text: string): string {
  const span = cut(text);
  if (typeof span === "string") return "";
  return /^name:[ \t]*(["']?)([^\r\n#]*?)\1[ \t]*(?:#.*)?\r?$/m.exec(text.slice(span.start, span.end))?.[2]?.trim() ?? "";
}

/** Has the browser ask before the page is closed while something is not saved. */
function useGuard(changed: boolean, settled: { current: boolean }) {
  useEffect(() => {
    if (!changed) return;
    const ask = (e: BeforeUnloadEvent) => {
      if (!settled.current) e.preventDefault();
    };
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [changed]);
}

/** The files as the hub takes them. */
export const asDraft = (work: Pick<Work, "of">, files: DraftFile[]): Schema["Draft"] => ({ files, skill_id: work.of?.id });
