import { writeCSV } from "../../features/csv/csv";
import { api, got, type Schema } from "../../shared/api/client";

const most = 100; // pages

async function all<T>(ask: (after?: string) => Promise<{ items: T[]; next?: string }>): Promise<T[]> {
  const out: T[] = [];
  let after: string | undefined;
  for (let i = 0; i < most; i++) {
    const page = await ask(after);
    out.push(...page.items);
    after = page.next;
    if (!after) break;
  }
  return out;
}

/** allUsers loads all users. */
export const allUsers = (signal?: AbortSignal): Promise<Schema["User"][]> =>
  all((after) => got(api.GET("/api/v1/users", { params: { query: { limit: 500, after } }, signal })));

/** allGroups loads all groups. */
export const allGroups = (signal?: AbortSignal): Promise<Schema["Group"][]> =>
  all((after) => got(api.GET("/api/v1/groups", { params: { query: { limit: 500, after } }, signal })));

/** usersAsCSV returns all users with their groups as CSV. */
export async function usersAsCSV(): Promise<string> {
  const [users, groups] = await Promise.all([allUsers(), allGroups()]);
  const memberships = new Map<string, string[]>();
  for (const g of groups) {
    const members = await all((after) =>
      got(
        api.GET("/api/v1/groups/{group}/members", { params: { path: { group: g.id }, query: { limit: 500, after } } }),
      ),
    );
    for (const m of members) memberships.set(m.user.id, [...(memberships.get(m.user.id) ?? []), `${g.name}:${m.role}`]);
  }
  const head = ["name", "display", "email", "groups", "admin", "disabled", "created", "seen"];
  const rows = users.map((u) => [
    u.name,
    u.display,
    u.account?.email,
    memberships.get(u.id)?.join(";"),
    u.account?.admin,
    u.disabled,
    u.account?.created,
    u.account?.seen,
  ]);
  return writeCSV([head, ...rows]);
}
