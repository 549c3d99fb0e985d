import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useNamespaceNames } from "../../features/skills/namespaces";
import { api, type Load, got, type Schema, useLoad } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";

export type ActiveSkill = Schema["ChatActiveSkill"];

/** useActiveSkills loads the active skills of a conversation, again whenever `at` changes. */
export function useActiveSkills(id: string, at: number): Load<ActiveSkill[]> {
  const load = useLoad(
    async (signal) =>
      (await got(api.GET("/api/v1/sessions/{session}/skills", { params: { path: { session: id } }, signal }))).items,
    [id, at],
  );
  useEffect(() => {
    const more = (load.data ?? []).flatMap((f): [string, string][] =>
      f.namespace ? [[keyOf(f.skill), f.namespace]] : [],
    );
    if (more.some(([key, home]) => homes.value.get(key) !== home)) homes.value = new Map([...homes.value, ...more]);
  }, [load.data]);
  return load;
}

/** The namespaces of skills, as far as known. A transcript has only the source labels. */
const homes = signal(new Map<string, string>());

const keyOf = (id: Schema["SessionID"]) => `${id.origin}/${id.dir}`;

/**
 * useOriginName returns a function that names the origin of a skill: its namespace if known, else the
 * source. It returns "" for skills of an agent.
 */
export function useOriginName(): (id: Schema["SessionID"]) => string {
  const place = useNamespaceNames();
  return (id) => {
    const home = homes.value.get(keyOf(id));
    if (home === `user:${me.value?.user.id}`) return msg("chat.origins.mine");
    if (home) return findMsg("chat.origins", home) ?? place(home);
    return /^agent(\.|$)/.test(id.origin) ? "" : (findMsg("chat.origins", id.origin) ?? id.origin);
  };
}
