import { api, got } from "../../shared/api/client";
import type { Completion } from "../../shared/content";

let known: Promise<Completion[]> | undefined;

/** names loads the skill and tool names, once. */
async function names(): Promise<Completion[]> {
  const [skills, plan] = await Promise.all([
    got(api.GET("/api/v1/skills", { params: { query: { limit: 500 } } })),
    got(api.GET("/api/v1/capabilities", {})).catch(() => undefined),
  ]);
  const tools = plan?.available_mcp_tools ?? [];
  return [
    ...tools.map((label) => ({ label })),
    ...skills.items.map((s) => ({ label: s.name, detail: s.description.slice(0, 40) })),
  ];
}

/** completions returns the names that start with a word, or contain it after a hyphen. */
export async function completions(word: string): Promise<Completion[]> {
  known ??= names();
  const all = await known.catch(() => {
    known = undefined;
    return [] as Completion[];
  });
  const w = word.toLowerCase();
  return all
    .filter(({ label }) => label.toLowerCase().startsWith(w) || label.toLowerCase().includes("-" + w))
    .slice(0, 20);
}
