import { placeName } from "../account/people";
import { api, got, usePages } from "../api/client";
import { More, Shown, When } from "../ui";
import { useHomes } from "./skills";
import type { View } from "./spent";
import { w } from "./words";

/** Skills that nobody used, and what to do about them. */
export function Unused({ view }: { view: View }) {
  const t = w();
  const namespace = useHomes(view);
  const pages = usePages((after, signal) => got(api.GET("/api/v1/usage/unused", { params: { query: { days: view.days, namespace, after, limit: 20 } }, signal })), [view.days, namespace?.join()]);
  return (
    <section class="stack">
      <h2>{t.unused}</h2>
      <p class="muted">{t.unusedText(view.days)}</p>
      <Shown asked={pages}>
        {(skills) => skills.length === 0 ? <p>{t.unusedNone}</p> : (
          <>
            <div class="note">
              <strong>{t.todo}</strong>
              <ul>{t.todos.map((line) => <li key={line}>{line}</li>)}</ul>
            </div>
            <ul class="usage-unused">
              {skills.map((s) => (
                <li key={s.id}>
                  <div class="grow"><a href={`/library/${s.id}`}>{s.name}</a> <span class="small muted">{placeName(s.namespace)}, {t.since} <When time={s.created} /></span><p class="small muted usage-clip">{s.description}</p></div>
                </li>
              ))}
            </ul>
          </>
        )}
      </Shown>
      <More pages={pages} />
    </section>
  );
}
