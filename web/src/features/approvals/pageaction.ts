import { api, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { type ApprovalRequest, pendingRequests } from "./requests";

/** An action that a skill requests from the page. */
interface Action {
  request_id?: string;
  skill_name?: string;
  action?: string;
  data?: { code?: unknown; title?: unknown } | null;
}

const begun = new Set<string>();

/**
 * runPageAction runs the page action of a request once and sends its result. Another window may answer
 * first. Old requests are skipped, because their answer follows in the same stream.
 */
export async function runPageAction(ask: ApprovalRequest) {
  if (begun.has(ask.id)) return;
  begun.add(ask.id);
  await new Promise((resolve) => setTimeout(resolve, 50));
  if (!pendingRequests.value.some((a) => a.id === ask.id)) return;
  const action = (ask.payload ?? {}) as Action;
  const body: Schema["Response"] = {
    request_id: action.request_id ?? ask.id,
    skill_name: action.skill_name,
    action: action.action,
    ...(await act(action)),
  };
  while (pendingRequests.value.some((a) => a.id === ask.id) && !(await isSent(body)))
    await new Promise((resolve) => setTimeout(resolve, 2000));
}

/** isSent sends an answer. It returns false if the hub is unreachable and the answer must be sent again. */
async function isSent(body: Schema["Response"]): Promise<boolean> {
  try {
    const { response } = await api.POST("/api/v1/skill-responses", { body });
    return response.status < 500;
  } catch {
    return false;
  }
}

/**
 * act runs an action and returns its result. A failure is a result too, so that the model can
 * correct its input.
 */
async function act(action: Action): Promise<{ success: boolean; result?: unknown; error?: unknown }> {
  if (action.action !== "render_mermaid")
    return { success: false, error: { message: msg("approvals.unknownAction", { name: String(action.action) }) } };
  const code = action.data?.code;
  if (typeof code !== "string" || !code.trim()) return { success: false, error: { message: msg("approvals.noCode") } };
  try {
    const { renderMermaid } = await import("../../shared/content/mermaid");
    const drawn = await renderMermaid(code);
    return "svg" in drawn ? { success: true, result: { svg: drawn.svg } } : { success: false, error: drawn };
  } catch (error) {
    return { success: false, error: { message: (error as Error).message } };
  }
}
