import { api, got, isUnreachable } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import type { Draft } from "./drafts";
import { asImages } from "./images";
import { clearRequestKey, keyFor } from "./requestkeys";
import { put, reload } from "./sessions";

/** An error after the conversation was created. The unsent message belongs to that conversation. */
export class Begun extends Error {
  constructor(
    readonly session: string,
    readonly why: unknown,
  ) {
    super();
  }
}

/** createConversation creates a conversation with a message, and returns its ID. */
export async function createConversation(draft: Draft): Promise<string> {
  const plain = !draft.skill && !draft.files.length;
  const body = {
    ...(draft.agent && { agent: draft.agent }),
    ...(draft.model && { model: draft.model }),
    ...(plain && { message: draft.text.trim() }),
  };
  const key = keyFor("", JSON.stringify(body));
  const session = await got(api.POST("/api/v1/sessions", { params: { header: { "Idempotency-Key": key } }, body }));
  put(session);
  try {
    if (!plain) {
      await sendMessage(session.id, draft);
      void reload(session.id).catch(() => {}); // the message gave it a title
    }
  } catch (error) {
    if (isUnreachable(error)) throw error; // the next attempt gets the same conversation
    clearRequestKey("");
    throw new Begun(session.id, error);
  }
  clearRequestKey("");
  return session.id;
}

/**
 * sendMessage uploads the files of a draft and sends it. The conversation continues after a step, on
 * a new branch, or after the last one. With files, it is a command of its own that starts the branch,
 * so that all versions of the message have the files. It returns the input of the message.
 */
export async function sendMessage(session: string, draft: Draft, after?: number): Promise<number> {
  if (!draft.files.length) return post(session, draft, [], after);
  const { checkSizes, withUploads } = await import("./attachment"); // loaded since the first file was attached
  await checkSizes(draft.files);
  const send = () => withUploads(session, draft.files, (paths) => post(session, draft, paths));
  if (after === undefined) return send();
  const branch = `${session} branch`;
  try {
    await switchBranch(session, after, keyFor(branch, `${after}`));
    const input = await send();
    clearRequestKey(branch);
    return input;
  } catch (error) {
    if (!isUnreachable(error)) clearRequestKey(branch); // otherwise the next attempt is the same switch
    throw error;
  }
}

/** post sends the message of a draft, whose files were uploaded to the given paths. */
async function post(session: string, draft: Draft, paths: readonly string[], after?: number): Promise<number> {
  const path = (f: File) => paths[draft.files.indexOf(f)]!;
  const seen = asImages(draft.files);
  const others = draft.files.filter((f) => !seen.includes(f)).map(path);
  const files = others.length ? msg("chat.attachedText", { names: others.join(", ") }) : "";
  const text = [draft.text.trim(), files].filter(Boolean).join("\n\n");
  const images = [...(draft.images ?? []), ...seen.map((f) => ({ path: path(f) }))];
  const body = { text, ...(draft.skill && { skill: draft.skill }), ...(images.length && { images }), after };
  const key = keyFor(session, JSON.stringify(body));
  const { input } = await got(
    api.POST("/api/v1/sessions/{session}/messages", {
      params: { path: { session }, header: { "Idempotency-Key": key } },
      body,
    }),
  );
  clearRequestKey(session);
  return input;
}

/**
 * switchBranch continues a conversation after a step, so that the branch with the step is shown. A
 * repeated request with the same key does not switch again.
 */
export const switchBranch = (session: string, after: number, key?: string) =>
  got(
    api.POST("/api/v1/sessions/{session}/branch", {
      params: { path: { session }, header: { "Idempotency-Key": key } },
      body: { after },
    }),
  );

/** cancel stops the running turn and removes queued messages. */
export const cancel = (session: string) =>
  got(api.POST("/api/v1/sessions/{session}/cancel", { params: { path: { session } } }));
