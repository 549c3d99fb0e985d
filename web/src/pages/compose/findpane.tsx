import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Problem, Tag, Waiting } from "../../shared/ui";
import type { Work } from "./draftstate";
import { adviceOn } from "./nameadvice";
import { listed } from "./phrases";
import { isAway, useFound } from "./validation";

/** The limits on the number and length of requests. */
const most = 20,
  longest = 1000;

/** FindPane tests which requests find the skill. */
export function FindPane({ work }: { work: Work }) {
  const queries = [
    ...new Set(
      work.requests
        .split("\n")
        .map((q) => q.trim().slice(0, longest))
        .filter(Boolean),
    ),
  ].slice(0, most);
  const found = useFound(work, queries);
  const all = queries.length ? found.data?.filter((f) => queries.includes(f.query)) : undefined;
  return (
    <div class="stack">
      <p class="small muted">{msg("compose.findLead")}</p>
      <AreaField
        label={msg("compose.requests")}
        hint={msg("compose.requestsHint")}
        placeholder={msg("compose.requestsPlace")}
        rows={5}
        value={work.requests}
        onText={work.setRequests}
      />
      {!queries.length && <p class="muted">{msg("compose.findEmpty")}</p>}
      {found.error &&
        queries.length > 0 &&
        (isAway(found.error) ? (
          <p class="note warn">{msg("compose.awayText")}</p>
        ) : (
          <>
            <p>{msg("compose.findLater")}</p>
            <Problem error={found.error} />
          </>
        ))}
      {!all && queries.length > 0 && !found.error && <Waiting for={msg("compose.searching")} />}
      {!!all?.length && (
        <p role="status">
          <strong>{msg("compose.found", { n: all.filter((f) => f.rank === 1).length, all: all.length })}</strong>
        </p>
      )}
      {all?.map((f) => (
        <Result key={f.query} found={f} work={work} />
      ))}
    </div>
  );
}

function Result({ found: f, work }: { found: Schema["DraftFound"]; work: Work }) {
  return (
    <section class="compose-found">
      <div class="row keep top">
        <h2 class="grow">{f.query}</h2>
        <Tag look={f.rank === 1 ? "good" : f.rank ? "warn" : "bad"}>
          {f.rank === 1 ? msg("compose.first") : f.rank ? msg("compose.place", { n: f.rank }) : msg("compose.notFound")}
        </Tag>
      </div>
      {f.rank !== 1 && <Hint found={f} work={work} />}
      {f.hits.length === 0 ? (
        <p class="small muted">{msg("compose.nobody")}</p>
      ) : (
        <details open={f.rank !== 1}>
          <summary class="small">{msg("compose.showHits", { count: f.hits.length })}</summary>
          <ol class="compose-hits">
            {f.hits.map((h, i) => (
              <li key={i} class={h.draft ? "mine" : ""}>
                <div class="row keep">
                  <span class="mono truncate">{h.name}</span>
                  {h.draft && <Tag look="accent">{msg("compose.draft")}</Tag>}
                  <span class="push small muted nowrap">{share(h.score, f.hits[0]!.score)}</span>
                </div>
                <p class="small muted compose-clip">{h.description}</p>
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}

/** share rates a hit relative to the best one, because absolute scores mean nothing. */
const share = (score: number, best: number) => `${Math.round((100 * score) / (best || 1))} %`;

/** Hint suggests how to rank first. */
function Hint({ found: f, work }: { found: Schema["DraftFound"]; work: Work }) {
  const first = f.hits.find((h) => !h.draft);
  const mine = f.hits.find((h) => h.draft);
  const { missing, elsewhere } = adviceOn(f.query, lookedAt(work, mine), first && `${first.name} ${first.description}`);
  return (
    <div class="small">
      {missing.length > 0 ? (
        <p>{msg("compose.missing", { list: listed(missing) })}</p>
      ) : (
        <p>{first ? msg("compose.weaker", { name: first.name }) : msg("compose.weakerAlone")}</p>
      )}
      {first && elsewhere.length > 0 && (
        <p>{msg("compose.elsewhere", { name: first.name, list: listed(elsewhere) })}</p>
      )}
    </div>
  );
}

/** lookedAt returns the text of the draft that a search uses. */
function lookedAt(work: Work, mine: Schema["DraftHit"] | undefined): string {
  const fields = /^---[\s\S]*?\n---/.exec(work.skill)?.[0] ?? "";
  return mine ? `${mine.name} ${mine.description} ${/^\s*tags:.*$/m.exec(fields)?.[0] ?? ""}` : fields;
}
