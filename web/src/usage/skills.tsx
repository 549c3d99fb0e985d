import { useState } from "preact/hooks";
import { placeName, usePeople } from "../account/people";
import { api, got, type Schema, useAsked } from "../api/client";
import { isAdmin, me } from "../api/me";
import { Button, Empty, Shown, TableWrap, When } from "../ui";
import { count } from "../words";
import { Share } from "./chart";
import type { View } from "./spent";
import { w } from "./words";

type Used = Schema["UsedSkill"];

/** How many places the hub takes in one question. */
const places = 100;

/**
 * Where the skills are at home whose usage is asked for. Administrators may know that of
 * all, and name them all: without a name the hub tells of what one reaches oneself.
 */
export function useHomes(view: View): string[] | undefined {
  const { users, groups } = usePeople();
  if (view.of !== "") return [view.of === "me" ? "default" : `group:${view.of}`];
  if (!isAdmin.value) return undefined;
  return ["public", "default", ...[...groups.keys()].map((id) => `group:${id}`), ...[...users.keys()].filter((id) => id !== me.value?.user.id).map((id) => `user:${id}`)].slice(0, places);
}

/** How many skills are looked through at most. */
const most = 2000;

/** All skills that were used; the hub tells them by name. */
async function used(days: number, namespace: string[] | undefined, signal: AbortSignal): Promise<Used[]> {
  const out: Used[] = [];
  let seen = 0;
  for (let after: string | undefined; seen < most; ) {
    const page = await got(api.GET("/api/v1/usage", { params: { query: { days, namespace, after, limit: 500 } }, signal }));
    seen += page.items.length;
    out.push(...page.items.filter((s) => s.loads + s.calls > 0));
    after = page.next;
    if (!after) break;
  }
  return out.toSorted((a, b) => b.loads - a.loads || b.calls - a.calls || a.name.localeCompare(b.name));
}

/** The skills that were used most. */
export function Skills({ view }: { view: View }) {
  const t = w();
  const [all, setAll] = useState(false);
  const homes = useHomes(view);
  const asked = useAsked((signal) => used(view.days, homes, signal), [view.days, homes?.join()]);
  return (
    <section class="stack">
      <h2>{t.skills}</h2>
      <p class="muted">{t.skillsText}{homes?.length === places && ` ${t.clipped(places)}`}</p>
      <Shown asked={asked}>
        {(skills) => skills.length === 0 ? <Empty title={t.noSkills} actions={<a class="button" href="/library">{t.toLibrary}</a>}>{t.noSkillsText}</Empty> : (
          <>
            <Table skills={all ? skills : skills.slice(0, 10)} most={skills[0]!.loads} />
            {skills.length > 10 && <div><Button small onClick={() => setAll(!all)}>{all ? t.top : `${t.all} (${count(skills.length)})`}</Button></div>}
          </>
        )}
      </Shown>
    </section>
  );
}

function Table({ skills, most }: { skills: Used[]; most: number }) {
  const t = w();
  return (
    <TableWrap label={t.skills}>
      <table class="table usage-table">
        <thead><tr><th scope="col">{t.skill}</th><th scope="col" class="number">{t.measures.loads}</th><th scope="col"><span class="visually-hidden">{t.measures.loads}</span></th>{[t.measures.calls, t.measures.errors, t.measures.tokens].map((name) => <th key={name} scope="col" class="number">{name}</th>)}<th scope="col">{t.last}</th></tr></thead>
        <tbody>
          {skills.map((s) => (
            <tr key={s.skill_id}>
              <th scope="row"><a href={`/library/${s.skill_id}`}>{s.name}</a> <span class="small muted">{placeName(s.namespace)}</span></th>
              <td class="number">{count(s.loads)}</td>
              <td class="usage-share-cell"><Share value={s.loads} most={most} /></td>
              {[s.calls, s.errors, s.tokens].map((n, i) => <td key={i} class="number">{count(n)}</td>)}
              <td>{s.used ? <When time={s.used} /> : t.notUsed}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableWrap>
  );
}
