import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Schema } from "../api/client";
import { Button, Icon } from "../ui";
import { language as spoken } from "../words";
import type { EditorLanguage } from "./editor-languages";
import { we } from "./editor-words";
import { heavy } from "./heavy";
import type { Mirror } from "./mirror";
import "./content.css";

/** Something that can be completed at the cursor. */
export interface Completion {
  label: string;
  detail?: string;
}

/** What is wrong at a line, and what mends it. */
export type Finding = Schema["Diagnostic"] & { apply?: () => void };

interface EditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  language: EditorLanguage;
  /** Underlined and listed at their lines; one that has an edit offers it as a fix. */
  diagnostics?: Finding[];
  /** Offered while one types a word. */
  completions?: (word: string) => Promise<Completion[]>;
  height?: string;
  readOnly?: boolean;
  /** A place to go to; a new object goes there again. */
  go?: { line: number; column?: number };
}

const useMirror = heavy(() => import("./mirror"));

/** An editor of text. Tab leaves it after Escape, as screen readers and keyboards need. */
export function Editor(props: EditorProps) {
  const { label, value, onChange, language, diagnostics = none, height, readOnly, go } = props;
  const module = useMirror();
  const id = useId();
  const host = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const mirror = useRef<Mirror | undefined>(undefined);
  const typing = useRef<number | undefined>(undefined);
  const now = useRef(props);
  now.current = props;
  const tongue = spoken.value;
  if (area.current && !mirror.current) typing.current = document.activeElement === area.current ? area.current.selectionStart : undefined;
  useLayoutEffect(() => {
    if (!module) return;
    const { complete, change } = { complete: (word: string) => now.current.completions?.(word) ?? Promise.resolve([]), change: (v: string) => now.current.onChange(v) };
    const made = new module.Mirror(host.current!, { value: now.current.value, label, described: `${id}-leave`, onChange: change, complete: now.current.completions && complete });
    mirror.current = made;
    if (typing.current !== undefined) made.focus(typing.current);
    return () => {
      mirror.current = undefined;
      made.end();
    };
  }, [module, label, tongue, !props.completions]);
  const made = [module, label, tongue, !props.completions];
  useEffect(() => mirror.current?.speak(language), [language, ...made]);
  useEffect(() => mirror.current?.lock(!!readOnly), [readOnly, ...made]);
  useLayoutEffect(() => mirror.current?.set(value), [value, ...made]);
  useEffect(() => mirror.current?.find(diagnostics), [diagnostics, ...made]);
  useEffect(() => void (go && mirror.current?.go(go.line, go.column)), [go, ...made]);
  return (
    <div class="content-editor">
      {module ? (
        <div class="text" ref={host} style={height ? { height } : undefined} />
      ) : (
        <textarea ref={area} class="input mono" aria-label={label} value={value} readOnly={readOnly} style={{ height: height ?? "8rem" }} onInput={(e) => onChange(e.currentTarget.value)} />
      )}
      <p class="visually-hidden" id={`${id}-leave`}>{we().leave}</p>
      {diagnostics.length > 0 && <Findings all={diagnostics} onGo={(f) => mirror.current?.go(f.line, f.column)} />}
    </div>
  );
}

const none: Finding[] = [];

const looks: Record<string, "bad" | "warn" | "info"> = { error: "bad", warning: "warn" };

/** What is wrong, below the text: each leads to its line, and mends itself where that is known. */
function Findings({ all, onGo }: { all: Finding[]; onGo: (f: Finding) => void }) {
  const t = we();
  return (
    <div class="findings" role="group" aria-label={t.problems(all.length)}>
      <p class="visually-hidden" role="status">{t.problems(all.length)}</p>
      <ul>
        {all.map((f, i) => (
          <li key={i} class={looks[f.severity] ?? "info"}>
            <Icon name={looks[f.severity] ? "warn" : "info"} size={16} />
            <span class="visually-hidden">{f.severity === "error" ? t.error : f.severity === "warning" ? t.warning : t.info}</span>
            <Button small look="quiet" onClick={() => onGo(f)}>{f.line ? t.line(f.line) : t.whole}</Button>
            <span class="grow">{f.message}{f.fix && !f.apply && <span class="muted"> {f.fix}</span>}</span>
            {f.apply && <Button small onClick={f.apply}>{f.fix || t.fix}</Button>}
          </li>
        ))}
      </ul>
    </div>
  );
}
