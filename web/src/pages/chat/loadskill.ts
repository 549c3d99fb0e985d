import { signal } from "@preact/signals";
import { api, got } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";

/** The conversation for which the user chooses a skill to load, or "". */
export const choosing = signal("");

/** How long a loaded skill stays in the context. */
export type Keep = "" | "pinned" | "once";

/** loadSkill loads a skill, or changes how long a loaded skill stays. */
export async function loadSkill(id: string, name: string, keep?: Keep) {
  const loaded = await got(
    api.POST("/api/v1/sessions/{session}/skills", {
      params: { path: { session: id } },
      body: keep === undefined ? { name } : { name, keep },
    }),
  );
  if (loaded.state === "failed")
    throw new Error(`${msg("chat.notLoaded", { name })}: ${loaded.problems?.join("; ") ?? ""}`);
  return loaded;
}
