import { api, type Schema } from "../api/client";
import { type Ask, asks } from "./waiting";
import { w } from "./words";

/** What a skill asks the page to do. */
interface Action {
  request_id?: string;
  skill_name?: string;
  action?: string;
  data?: { code?: unknown; title?: unknown } | null;
}

const begun = new Set<string>();

/**
 * Carries out a skill:request once, and says what came of it. The answer of another window
 * may be first; then this one is not needed. What was told of long ago and is settled is left
 * alone: its answer comes right behind it.
 */
export async function carryOut(ask: Ask) {
  if (begun.has(ask.id)) return;
  begun.add(ask.id);
  await new Promise((resolve) => setTimeout(resolve, 50));
  if (!asks.value.some((a) => a.id === ask.id)) return;
  const action = (ask.payload ?? {}) as Action;
  const body: Schema["Response"] = { request_id: action.request_id ?? ask.id, skill_name: action.skill_name, action: action.action, ...(await act(action)) };
  while (asks.value.some((a) => a.id === ask.id) && !(await isSent(body))) await new Promise((resolve) => setTimeout(resolve, 2000));
}

/** Sends an answer; false where the hub is away, and it is to be sent again. */
async function isSent(body: Schema["Response"]): Promise<boolean> {
  try {
    const { response } = await api.POST("/api/v1/skill-responses", { body });
    return response.status < 500;
  } catch {
    return false;
  }
}

/** What came of it. A failure is an answer too: the model mends what it wrote. */
async function act(action: Action): Promise<{ success: boolean; result?: unknown; error?: unknown }> {
  if (action.action !== "render_mermaid") return { success: false, error: { message: w().unknownAction(String(action.action)) } };
  const code = action.data?.code;
  if (typeof code !== "string" || !code.trim()) return { success: false, error: { message: w().noCode } };
  try {
    const { renderMermaid } = await import("../content/mermaid");
    const drawn = await renderMermaid(code);
    return "svg" in drawn ? { success: true, result: { svg: drawn.svg } } : { success: false, error: drawn };
  } catch (error) {
    return { success: false, error: { message: (error as Error).message } };
  }
}
