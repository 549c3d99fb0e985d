import type { ComponentChildren } from "preact";
import { Refusal, type Load, type Pages, type Schema } from "../api/client";
import { ago, formatTime } from "../i18n/format";
import { msg } from "../i18n/messages";
import { translateDiagnostic, translateProblem } from "../servertext";
import { ActionButton, Button } from "./button";

/** Waiting says what is loading. */
export function Waiting({ for: what }: { for?: string }) {
  return (
    <p class="waiting" role="status">
      {what ?? msg("ui.loading")}
    </p>
  );
}

/** Empty explains an empty place and offers an action. */
export function Empty({
  title,
  children,
  actions,
}: {
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <div>{children}</div>}
      {actions && <div class="row">{actions}</div>}
    </div>
  );
}

/** Problem shows an error: what failed, what happened, the reasons, and what to do. */
export function Problem({ what, error, again }: { what?: string; error: unknown; again?: () => void }) {
  const problem = error instanceof Refusal ? translateProblem(error.problem) : undefined;
  return (
    <div class="note bad" role="alert">
      {what && <div>{what}</div>}
      <strong>{problem?.detail || (error as Error)?.message || msg("ui.failed")}</strong>
      <Reasons errors={problem?.errors} diagnostics={problem?.diagnostics} />
      {problem?.next && (
        <div class="muted">
          {msg("ui.next")}
          {problem.next}
        </div>
      )}
      {problem && problem.status >= 500 && problem.request && (
        <div class="small muted">
          {msg("ui.request")}
          <code>{problem.request}</code>
        </div>
      )}
      {again && (
        <div>
          <Button small icon="again" onClick={again}>
            {msg("ui.again")}
          </Button>
        </div>
      )}
    </div>
  );
}

/** Reasons lists invalid fields or files, and problems of a SKILL.md. */
export function Reasons({
  errors = [],
  diagnostics = [],
}: {
  errors?: Schema["Fault"][];
  diagnostics?: Schema["Diagnostic"][];
}) {
  if (!errors.length && !diagnostics.length) return null;
  return (
    <ul>
      {errors.map((f) => (
        <li key={f.where + f.message}>
          {f.where && <code>{f.where}</code>} {f.message}
        </li>
      ))}
      {diagnostics.map(translateDiagnostic).map((d, i) => (
        <li key={i}>
          {d.line > 0 && (
            <code>
              SKILL.md:{d.line}:{d.column}{" "}
            </code>
          )}
          {d.message}
          {d.fix && <span class="muted"> — {d.fix}</span>}
        </li>
      ))}
    </ul>
  );
}

/** Shown shows loaded data, the loading state, or the error. */
export function Shown<T>({
  asked,
  waiting,
  children,
}: {
  asked: Load<T>;
  waiting?: string;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <>
      {asked.error && <Problem error={asked.error} again={() => void asked.again()} />}
      {asked.data === undefined ? !asked.error && <Waiting for={waiting} /> : children(asked.data)}
    </>
  );
}

/** More loads the next page of a list. */
export function More<T>({ pages }: { pages: Pages<T> }) {
  return pages.more ? (
    <div class="row">
      <ActionButton act={pages.more}>{msg("ui.more")}</ActionButton>
    </div>
  ) : null;
}

/** When shows a time relative to now, with the full time as title. */
export function When({ time }: { time: string }) {
  return (
    <time dateTime={time} title={formatTime(time)} class="nowrap">
      {ago(time)}
    </time>
  );
}

/** Tag shows a state. */
export function Tag({
  look = "",
  title,
  children,
}: {
  look?: "good" | "warn" | "bad" | "accent" | "";
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <span class={`tag ${look}`} title={title}>
      {children}
    </span>
  );
}
