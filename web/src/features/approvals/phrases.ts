import { msg } from "../../shared/i18n/messages";
import type { ApprovalRequest } from "./requests";

/** pendingText says how many requests are pending. */
export const pendingText = (count: number): string => msg("approvals.waits", { count });

/** title describes a request in one line. */
export function title(ask: ApprovalRequest): string {
  const kind =
    {
      approval: msg("approvals.approval"),
      elicitation: msg("approvals.elicitation"),
      form: msg("approvals.form"),
      action: msg("approvals.action"),
    }[ask.kind] ?? ask.kind;
  const tool = ask.kind === "approval" ? (ask.payload as { tool?: string } | undefined)?.tool : undefined;
  return tool ? `${kind}: ${tool}` : kind;
}
