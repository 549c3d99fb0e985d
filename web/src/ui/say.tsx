import type { ComponentChildren } from "preact";
import { Refusal, type Asked, type Pages } from "../api/client";
import { toldDiagnostic, toldProblem } from "../told";
import { ago, moment } from "../words";
import { ActionButton, Button } from "./button";
import { w } from "./words";

/** Says in words what is waited for: no wheel that only turns. */
export function Waiting({ for: what }: { for?: string }) {
  return <p class="waiting" role="status">{what ?? w().loading}</p>;
}

/** A place where nothing is yet, that says what it is for and how something gets there. */
export function Empty({ title, children, actions }: { title: string; children?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <div>{children}</div>}
      {actions && <div class="row">{actions}</div>}
    </div>
  );
}

/** An error in full: what happened, every reason, and what to do. */
export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  const problem = error instanceof Refusal ? toldProblem(error.problem) : undefined;
  return (
    <div class="note bad" role="alert">
      <strong>{problem?.detail || (error as Error)?.message || w().failed}</strong>
      {!!problem?.errors?.length && <ul>{problem.errors.map((f, i) => <li key={i}>{f.where && <code>{f.where}</code>} {f.message}</li>)}</ul>}
      {!!problem?.diagnostics?.length && (
        <ul>{problem.diagnostics.map(toldDiagnostic).map((d, i) => <li key={i}>{d.line > 0 && <code>SKILL.md:{d.line}:{d.column} </code>}{d.message}{d.fix && <span class="muted"> — {d.fix}</span>}</li>)}</ul>
      )}
      {problem?.next && <div class="muted">{w().next}{problem.next}</div>}
      {problem && problem.status >= 500 && problem.request && <div class="small muted">{w().request}<code>{problem.request}</code></div>}
      {again && <div><Button small icon="again" onClick={again}>{w().again}</Button></div>}
    </div>
  );
}

/** What was asked for, once it is there; before that what is waited for, or why it is not there. */
export function Shown<T>({ asked, waiting, children }: { asked: Asked<T>; waiting?: string; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {asked.error && <Problem error={asked.error} again={() => void asked.again()} />}
      {asked.data === undefined ? !asked.error && <Waiting for={waiting} /> : children(asked.data)}
    </>
  );
}

/** The button below a list of which there is more. */
export function More<T>({ pages }: { pages: Pages<T> }) {
  return pages.more ? <div class="row"><ActionButton act={pages.more}>{w().more}</ActionButton></div> : null;
}

/** A moment as how long ago it was, in full when pointed at. */
export function When({ time }: { time: string }) {
  return <time dateTime={time} title={moment(time)} class="nowrap">{ago(time)}</time>;
}

/** A mark of a state, in words. */
export function Tag({ look = "", title, children }: { look?: "good" | "warn" | "bad" | "accent" | ""; title?: string; children: ComponentChildren }) {
  return <span class={`tag ${look}`} title={title}>{children}</span>;
}
