import { useState } from "preact/hooks";
import type { View } from "../../features/usage/totals";
import { namespaceName, useUserNames } from "../../features/users/users";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { isAdmin, me } from "../../shared/api/me";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Empty, Shown, TableWrap, When } from "../../shared/ui";
import { Share } from "./chart";

type Used = Schema["UsedSkill"];

/** The namespace limit of one request. */
const places = 100;

/**
 * useListedNamespaces returns the namespaces to request. Administrators must name them all, because the hub's
 * default is the user's own.
 */
export function useListedNamespaces(view: View): string[] | undefined {
  const { users, groups } = useUserNames();
  if (view.of !== "") return [view.of === "me" ? "default" : `group:${view.of}`];
  if (!isAdmin.value) return undefined;
  return [
    "public",
    "hub",
    "bundled",
    "default",
    ...[...groups.keys()].map((id) => `group:${id}`),
    ...[...users.keys()].filter((id) => id !== me.value?.user.id).map((id) => `user:${id}`),
  ].slice(0, places);
}

/** The limit of loaded skills. */
const most = 2000;

/** used loads all used skills by name. */
async function used(days: number, namespace: string[] | undefined, signal: AbortSignal): Promise<Used[]> {
  const out: Used[] = [];
  let seen = 0;
  for (let after: string | undefined; seen < most;) {
    const page = await got(
      api.GET("/api/v1/usage", { params: { query: { days, namespace, after, limit: 500 } }, signal }),
    );
    seen += page.items.length;
    out.push(...page.items.filter((s) => s.loads + s.calls > 0));
    after = page.next;
    if (!after) break;
  }
  return out.toSorted((a, b) => b.loads - a.loads || b.calls - a.calls || a.name.localeCompare(b.name));
}

/** Skills lists the most used skills. */
export function Skills({ view }: { view: View }) {
  const [all, setAll] = useState(false);
  const homes = useListedNamespaces(view);
  const load = useLoad((signal) => used(view.days, homes, signal), [view.days, homes?.join()]);
  return (
    <section class="stack">
      <h2>{msg("usage.skills")}</h2>
      <p class="muted">
        {msg("usage.skillsText")}
        {homes?.length === places && ` ${msg("usage.clipped", { n: places })}`}
      </p>
      <Shown asked={load}>
        {(skills) =>
          skills.length === 0 ? (
            <Empty
              title={msg("usage.noSkills")}
              actions={
                <a class="button" href="/library">
                  {msg("usage.toLibrary")}
                </a>
              }
            >
              {msg("usage.noSkillsText")}
            </Empty>
          ) : (
            <>
              <Table skills={all ? skills : skills.slice(0, 10)} most={skills[0]!.loads} />
              {skills.length > 10 && (
                <div>
                  <Button small onClick={() => setAll(!all)}>
                    {all ? msg("usage.top") : `${msg("usage.all")} (${count(skills.length)})`}
                  </Button>
                </div>
              )}
            </>
          )
        }
      </Shown>
    </section>
  );
}

function Table({ skills, most }: { skills: Used[]; most: number }) {
  return (
    <TableWrap label={msg("usage.skills")}>
      <table class="table usage-table">
        <thead>
          <tr>
            <th scope="col">{msg("usage.skill")}</th>
            <th scope="col" class="number">
              {msg("usage.measures.loads")}
            </th>
            <th scope="col">
              <span class="visually-hidden">{msg("usage.measures.loads")}</span>
            </th>
            {[msg("usage.measures.calls"), msg("usage.measures.errors"), msg("usage.measures.tokens")].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
            <th scope="col">{msg("usage.last")}</th>
          </tr>
        </thead>
        <tbody>
          {skills.map((s) => (
            <tr key={s.skill_id}>
              <th scope="row">
                <a href={`/library/${s.skill_id}`}>{s.name}</a>{" "}
                <span class="small muted">{namespaceName(s.namespace)}</span>
              </th>
              <td class="number">{count(s.loads)}</td>
              <td class="usage-share-cell">
                <Share value={s.loads} most={most} />
              </td>
              {[s.calls, s.errors, s.tokens].map((n, i) => (
                <td key={i} class="number">
                  {count(n)}
                </td>
              ))}
              <td>{s.used ? <When time={s.used} /> : msg("usage.notUsed")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableWrap>
  );
}
