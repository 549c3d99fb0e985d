import { useState } from "preact/hooks";
import { placeName, usePeople } from "../account/people";
import { api, got, type Schema, useAsked } from "../api/client";
import { Button, Empty, Shown, When } from "../ui";
import { count } from "../words";
import { Share } from "./chart";
import type { View } from "./spent";
import { w } from "./words";

type Used = Schema["UsedSkill"];

/** Of whom the usage of skills is asked: of those at home there. */
export const skillsOf = (view: View): string[] | undefined => (view.of === "" ? undefined : [view.of === "me" ? "default" : `group:${view.of}`]);

/** How many skills are looked through at most. */
const most = 2000;

/** All skills that were used; the hub tells them by name. */
async function used(view: View, signal: AbortSignal): Promise<Used[]> {
  const out: Used[] = [];
  let seen = 0;
  for (let after: string | undefined; seen < most; ) {
    const page = await got(api.GET("/api/v1/usage", { params: { query: { days: view.days, namespace: skillsOf(view), after, limit: 500 } }, signal }));
    seen += page.items.length;
    out.push(...page.items.filter((s) => s.loads + s.calls > 0));
    after = page.next;
    if (!after) break;
  }
  return out.toSorted((a, b) => b.loads - a.loads || b.calls - a.calls || a.name.localeCompare(b.name));
}

/** The skills that were used most. */
export function Skills({ view }: { view: View }) {
  usePeople();
  const t = w();
  const [all, setAll] = useState(false);
  const asked = useAsked((signal) => used(view, signal), [view.days, view.of]);
  return (
    <section class="stack">
      <h2>{t.skills}</h2>
      <p class="muted">{t.skillsText}</p>
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
    <div class="table-wrap">
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
    </div>
  );
}
