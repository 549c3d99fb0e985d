import { ErrorBoundary, lazy } from "preact-iso";
import { Icon, Tag } from "../ui";
import { moment } from "../words";
import { type Ask, asks } from "./waiting";
import { w } from "./words";

// With its forms and its editor it is fetched when the first question is asked.
const Question = lazy(() => import("./question").then((m) => m.Question));

interface InlineAskProps {
  ask: Ask;
  /** How it was settled, where it is. */
  outcome?: string;
}

/** A question in its conversation: open with what answers it, else a line that says how it was settled. */
export function InlineAsk({ ask, outcome }: InlineAskProps) {
  const t = w();
  if (ask.kind === "action") return null;
  const open = !outcome && asks.value.some((a) => a.id === ask.id);
  if (!open) {
    return (
      <p class="asks-line small muted">
        <Icon name="asks" size={16} /> {title(ask)} <Tag look={outcome === "accepted" ? "good" : outcome ? "warn" : ""}>{(outcome && t.settled[outcome]) ?? outcome ?? "…"}</Tag>
      </p>
    );
  }
  return (
    <section class="asks-inline card" aria-label={title(ask)}>
      <h3 class="row"><Icon name="asks" /> {title(ask)} {ask.deadline && <span class="small muted push">{t.until(moment(ask.deadline))}</span>}</h3>
      <ErrorBoundary><Question ask={ask} /></ErrorBoundary>
    </section>
  );
}

/** A question in a line. */
export function title(ask: Ask): string {
  const t = w();
  const kind = { approval: t.approval, elicitation: t.elicitation, form: t.form, action: t.action }[ask.kind] ?? ask.kind;
  const tool = ask.kind === "approval" ? (ask.payload as { tool?: string } | undefined)?.tool : undefined;
  return tool ? `${kind}: ${tool}` : kind;
}
