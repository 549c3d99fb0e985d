import { api, got } from "../api/client";
import { limits } from "../api/limits";
import { size } from "../words";
import type { Draft } from "./drafts";
import { accepted, keyFor } from "./sent";
import { put, titleFrom } from "./sessions";
import { w } from "./words";

/** A failure after the conversation was begun: what was not sent is to be sent there. */
export class Begun extends Error {
  constructor(readonly session: string, readonly why: unknown) {
    super();
  }
}

/** Begins a conversation with what was written, and returns its id. */
export async function begin(agent: string, draft: Draft): Promise<string> {
  const title = titleFrom(draft.text || draft.skill || draft.files[0]?.name || "");
  const plain = !draft.skill && !draft.files.length;
  const session = await got(api.POST("/api/v1/sessions", { body: { title, ...(agent && { agent }), ...(plain && { message: draft.text.trim() }) } }));
  put(session);
  try {
    if (!plain) await say(session.id, draft);
  } catch (error) {
    throw new Begun(session.id, error);
  }
  return session.id;
}

/** Keeps the files of a draft, and says it. */
export async function say(session: string, draft: Draft) {
  for (const file of draft.files) await keepFile(session, file);
  const files = draft.files.length ? w().attachedText(draft.files.map((f) => f.name).join(", ")) : "";
  const text = [draft.text.trim(), files].filter(Boolean).join("\n\n");
  const body = { text, ...(draft.skill && { skill: draft.skill }) };
  const key = keyFor(session, JSON.stringify(body));
  await got(api.POST("/api/v1/sessions/{session}/messages", { params: { path: { session }, header: { "Idempotency-Key": key } }, body }));
  accepted(session);
}

/** Keeps a file in a conversation, in place of one of its name. */
export async function keepFile(session: string, file: File) {
  const most = (await limits()).session_file;
  if (file.size > most) throw new Error(w().tooLarge(file.name, size(most)));
  await got(
    api.PUT("/api/v1/sessions/{session}/files/{path}", {
      params: { path: { session, path: file.name } },
      body: file as unknown as string, // bytes as they are; their type is not told by the document
      bodySerializer: () => file,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  );
}

/** Stops the turn that is under way, and takes back what waits. */
export const cancel = (session: string) => got(api.POST("/api/v1/sessions/{session}/cancel", { params: { path: { session } } }));
