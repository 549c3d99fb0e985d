import type { Schema } from "../api/client";
import { AreaField, Problem, Tag, Waiting } from "../ui";
import { adviceOn } from "./advice";
import { isAway, useFound } from "./check";
import { listed, w } from "./words";
import type { Work } from "./work";

/** So many requests are looked at, and so much of each. */
const most = 20, longest = 1000;

/** Tries whether the skill would be found for what people ask. */
export function FindPane({ work }: { work: Work }) {
  const queries = [...new Set(work.requests.split("\n").map((q) => q.trim().slice(0, longest)).filter(Boolean))].slice(0, most);
  const found = useFound(work, queries);
  const all = queries.length ? found.data?.filter((f) => queries.includes(f.query)) : undefined;
  return (
    <div class="stack">
      <p class="small muted">{w().findLead}</p>
      <AreaField label={w().requests} hint={w().requestsHint} placeholder={w().requestsPlace} rows={5} value={work.requests} onText={work.setRequests} />
      {!queries.length && <p class="muted">{w().findEmpty}</p>}
      {found.error && queries.length > 0 && (isAway(found.error) ? <p class="note warn">{w().awayText}</p> : <><p>{w().findLater}</p><Problem error={found.error} /></>)}
      {!all && queries.length > 0 && !found.error && <Waiting for={w().searching} />}
      {!!all?.length && <p role="status"><strong>{w().found(all.filter((f) => f.rank === 1).length, all.length)}</strong></p>}
      {all?.map((f) => <Result key={f.query} found={f} work={work} />)}
    </div>
  );
}

function Result({ found: f, work }: { found: Schema["DraftFound"]; work: Work }) {
  return (
    <section class="compose-found">
      <div class="row keep top">
        <h2 class="grow">{f.query}</h2>
        <Tag look={f.rank === 1 ? "good" : f.rank ? "warn" : "bad"}>{f.rank === 1 ? w().first : f.rank ? w().place(f.rank) : w().notFound}</Tag>
      </div>
      {f.rank !== 1 && <Hint found={f} work={work} />}
      {f.hits.length === 0 ? <p class="small muted">{w().nobody}</p> : (
        <details open={f.rank !== 1}>
          <summary class="small">{w().showHits(f.hits.length)}</summary>
          <ol class="compose-hits">
            {f.hits.map((h, i) => (
              <li key={i} class={h.draft ? "mine" : ""}>
                <div class="row keep"><span class="mono truncate">{h.name}</span>{h.draft && <Tag look="accent">{w().draft}</Tag>}<span class="push small muted nowrap">{share(h.score, f.hits[0]!.score)}</span></div>
                <p class="small muted compose-clip">{h.description}</p>
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}

/** How good a hit is next to the best: what scores are by themselves says nothing. */
const share = (score: number, best: number) => `${Math.round((100 * score) / (best || 1))} %`;

/** What to change in the draft so that it is found first. */
function Hint({ found: f, work }: { found: Schema["DraftFound"]; work: Work }) {
  const first = f.hits.find((h) => !h.draft);
  const mine = f.hits.find((h) => h.draft);
  const { missing, elsewhere } = adviceOn(f.query, lookedAt(work, mine), first && `${first.name} ${first.description}`);
  return (
    <div class="small">
      {missing.length > 0 ? <p>{w().missing(listed(missing))}</p> : <p>{first ? w().weaker(first.name) : w().weakerAlone}</p>}
      {first && elsewhere.length > 0 && <p>{w().elsewhere(first.name, listed(elsewhere))}</p>}
    </div>
  );
}

/** What a search looks at of the draft: its fields, of which the hub told the description where it found the draft. */
function lookedAt(work: Work, mine: Schema["DraftHit"] | undefined): string {
  const fields = /^---[\s\S]*?\n---/.exec(work.skill)?.[0] ?? "";
  return mine ? `${mine.name} ${mine.description} ${/^\s*tags:.*$/m.exec(fields)?.[0] ?? ""}` : fields;
}
