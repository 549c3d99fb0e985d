import type { View } from "../../features/usage/totals";
import { namespaceName } from "../../features/users/users";
import { api, got, usePages } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { More, Shown, When } from "../../shared/ui";
import { unusedTips } from "./phrases";
import { useListedNamespaces } from "./skills";

/** Unused lists unused skills with suggestions. */
export function Unused({ view }: { view: View }) {
  const namespace = useListedNamespaces(view);
  const pages = usePages(
    (after, signal) =>
      got(
        api.GET("/api/v1/usage/unused", {
          params: { query: { days: view.days, namespace, after, limit: 20 } },
          signal,
        }),
      ),
    [view.days, namespace?.join()],
  );
  return (
    <section class="stack">
      <h2>{msg("usage.unused")}</h2>
      <p class="muted">{msg("usage.unusedText", { count: view.days })}</p>
      <Shown asked={pages}>
        {(skills) =>
          skills.length === 0 ? (
            <p>{msg("usage.unusedNone")}</p>
          ) : (
            <>
              <div class="note">
                <strong>{msg("usage.todo")}</strong>
                <ul>
                  {unusedTips().map((line) => (
                    <li key={line}>{line}</li>
                  ))}
                </ul>
              </div>
              <ul class="usage-unused">
                {skills.map((s) => (
                  <li key={s.id}>
                    <div class="grow">
                      <a href={`/library/${s.id}`}>{s.name}</a>{" "}
                      <span class="small muted">
                        {namespaceName(s.namespace)}, {msg("usage.since")} <When time={s.created} />
                      </span>
                      <p class="small muted usage-clip">{s.description}</p>
                    </div>
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Shown>
      <More pages={pages} />
    </section>
  );
}
