import { api, got } from "../api/client";
import type { Completion } from "../content";

let known: Promise<Completion[]> | undefined;

/** The names that can stand in a skill: other skills, and tools. They are asked for once. */
async function names(): Promise<Completion[]> {
  const [skills, plan] = await Promise.all([
    got(api.GET("/api/v1/skills", { params: { query: { limit: 500 } } })),
    got(api.GET("/api/v1/capabilities", {})).catch(() => undefined),
  ]);
  const tools = plan?.available_mcp_tools ?? [];
  return [...tools.map((label) => ({ label })), ...skills.items.map((s) => ({ label: s.name, detail: s.description.slice(0, 40) }))];
}

/** What begins with a word, or has it behind a hyphen. */
export async function completions(word: string): Promise<Completion[]> {
  known ??= names();
  const all = await known.catch(() => {
    known = undefined;
    return [] as Completion[];
  });
  const w = word.toLowerCase();
  return all.filter(({ label }) => label.toLowerCase().startsWith(w) || label.toLowerCase().includes("-" + w)).slice(0, 20);
}
