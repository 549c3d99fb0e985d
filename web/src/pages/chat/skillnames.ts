import { api, got } from "../../shared/api/client";
import { load, type Skill, skills } from "./skillsearch";

/** isSkill reports whether the user can use a skill of this name. In a large library it may ask the hub. */
export async function isSkill(name: string): Promise<boolean> {
  if (!skills.value) await load();
  const isIt = (s: Skill) => s.name === name;
  if (!skills.value?.more || skills.value.items.some(isIt)) return !!skills.value?.items.some(isIt);
  const query = { q: name, sort: "relevance" as const, limit: 100 };
  return (await got(api.GET("/api/v1/skills", { params: { query } }))).items.some(isIt);
}
