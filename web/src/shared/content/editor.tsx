import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { language as pageLanguage } from "../i18n/language";
import { msg } from "../i18n/messages";
import { Button, Icon } from "../ui";
import type { Mirror } from "./codemirror";
import type { EditorLanguage } from "./editor-languages";
import type { Finding } from "./finding";
import { lazyModule } from "./lazyload";
import "./content.css";

/** A completion at the cursor. */
export interface Completion {
  label: string;
  detail?: string;
}

interface EditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  language: EditorLanguage;
  /** Marked and listed at their lines. A diagnostic with an edit offers it as a fix. */
  diagnostics?: Finding[];
  /** Completes the current word. */
  completions?: (word: string) => Promise<Completion[]>;
  height?: string;
  readOnly?: boolean;
  /** A position to show. A new object shows it again. */
  go?: { line: number; column?: number };
}

const useMirror = lazyModule(() => import("./codemirror"));

/** Editor edits text. Escape, then Tab leaves it, as keyboards and screen readers need. */
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
  const tongue = pageLanguage.value;
  if (area.current && !mirror.current)
    typing.current = document.activeElement === area.current ? area.current.selectionStart : undefined;
  useLayoutEffect(() => {
    if (!module) return;
    const { complete, change } = {
      complete: (word: string) => now.current.completions?.(word) ?? Promise.resolve([]),
      change: (v: string) => now.current.onChange(v),
    };
    const made = new module.Mirror(host.current!, {
      value: now.current.value,
      label,
      described: `${id}-leave`,
      onChange: change,
      complete: now.current.completions && complete,
    });
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
        <textarea
          ref={area}
          class="input mono"
          aria-label={label}
          value={value}
          readOnly={readOnly}
          style={{ height: height ?? "8rem" }}
          onInput={(e) => onChange(e.currentTarget.value)}
        />
      )}
      <p class="visually-hidden" id={`${id}-leave`}>
        {msg("editor.leave")}
      </p>
      {diagnostics.length > 0 && <Findings all={diagnostics} onGo={(f) => mirror.current?.go(f.line, f.column)} />}
    </div>
  );
}

const none: Finding[] = [];

const looks: Record<string, "bad" | "warn" | "info"> = { error: "bad", warning: "warn" };

/** Findings lists the diagnostics below the text, with links to their lines and fixes. */
function Findings({ all, onGo }: { all: Finding[]; onGo: (f: Finding) => void }) {
  return (
    <div class="findings" role="group" aria-label={msg("editor.problems", { count: all.length })}>
      <p class="visually-hidden" role="status">
        {msg("editor.problems", { count: all.length })}
      </p>
      <ul>
        {all.map((f, i) => (
          <li key={i} class={looks[f.severity] ?? "info"}>
            <Icon name={looks[f.severity] ? "warn" : "info"} size={16} />
            <span class="visually-hidden">
              {f.severity === "error"
                ? msg("editor.error")
                : f.severity === "warning"
                  ? msg("editor.warning")
                  : msg("editor.info")}
            </span>
            <Button small look="quiet" onClick={() => onGo(f)}>
              {f.line ? msg("editor.line", { n: f.line }) : msg("editor.whole")}
            </Button>
            <span class="grow">
              {f.message}
              {f.fix && !f.apply && <span class="muted"> {f.fix}</span>}
            </span>
            {f.apply && (
              <Button small onClick={f.apply}>
                {f.fix || msg("editor.fix")}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
