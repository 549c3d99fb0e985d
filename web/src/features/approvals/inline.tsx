import { ErrorBoundary } from "preact-iso";
import { formatTime } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Icon, Tag } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { title } from "./phrases";
import { type ApprovalRequest, isPending } from "./requests";
import "./approvals.css";

// The form and the editor are loaded with the first request.
const Question = lazyPart(() => import("./request").then((m) => m.Question));

interface InlineAskProps {
  ask: ApprovalRequest;
  /** The resolution of the request, if it is resolved. */
  outcome?: string;
}

/**
 * InlineAsk shows a request in its conversation: the form if it is pending, else a line with its
 * resolution.
 */
export function InlineAsk({ ask, outcome }: InlineAskProps) {
  if (ask.kind === "action") return null;
  const open = !outcome && isPending(ask);
  if (!open) {
    return (
      <p class="asks-line small muted">
        <Icon name="asks" size={16} /> {title(ask)}{" "}
        <Tag look={outcome === "accepted" ? "good" : outcome ? "warn" : ""}>
          {(outcome && findMsg("approvals.settled", outcome)) ?? outcome ?? "…"}
        </Tag>
      </p>
    );
  }
  return (
    <section class="asks-inline card" aria-label={title(ask)}>
      <h3 class="row">
        <Icon name="asks" /> {title(ask)}{" "}
        {ask.deadline && (
          <span class="small muted push">{msg("approvals.until", { time: formatTime(ask.deadline) })}</span>
        )}
      </h3>
      <ErrorBoundary>
        <Question ask={ask} />
      </ErrorBoundary>
    </section>
  );
}
