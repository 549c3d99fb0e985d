import { refusal, Unreachable } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { done, failed } from "../../shared/ui";
import { keepFocus } from "./listfocus";
import { change, remove, type Session } from "./sessions";
import { removeTranscript } from "./transcriptcache";

export async function pin(s: Session) {
  const focus = keepFocus(s.id);
  await change(s.id, { pinned: !s.pinned }).catch(failed);
  focus();
}

export async function archive(s: Session) {
  const focus = keepFocus(s.id);
  try {
    await change(s.id, { archived: !s.archived });
    done(s.archived ? msg("chat.unarchived") : msg("chat.archivedDone"));
  } catch (error) {
    failed(error);
  }
  focus();
}

/** deleteConversation deletes a conversation and what the page knows of it. */
export async function deleteConversation(id: string) {
  const focus = keepFocus(id);
  await remove(id);
  removeTranscript(id);
  done(msg("chat.removed"));
  focus();
}

/** exportSession makes the browser save a conversation. */
export const exportSession = (id: string, format: "markdown" | "jsonl") => void saveExport(id, format).catch(failed);

/**
 * saveExport makes the browser save a conversation, under the name the hub gives. The browser itself would not say why
 * it is refused.
 */
async function saveExport(id: string, format: "markdown" | "jsonl") {
  const address = `/api/v1/sessions/${id}/export?format=${format}`;
  const get = (method: string) =>
    fetch(address, { method }).catch(() => {
      throw new Unreachable();
    });
  if (!(await get("HEAD")).ok) {
    const refused = await get("GET"); // a response to HEAD has no reason
    if (!refused.ok) throw refusal(refused.status, await refused.json().catch(() => undefined));
    await refused.body?.cancel();
  }
  const a = document.createElement("a");
  a.href = address;
  a.download = "export"; // without it the browser would navigate
  document.body.append(a);
  a.click();
  a.remove();
}
