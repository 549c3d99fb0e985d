import { useUserNames } from "../../features/skills/namespaces";
import { useAddress } from "../../features/skills/skilladdress";
import { api, got, useLoad, usePages, type Schema } from "../../shared/api/client";
import { count, short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Icon, More, Problem, Shown, When } from "../../shared/ui";
import { can, type Looked } from "./opened";
import { lastDays } from "./phrases";
import { ReferenceList } from "./references";
import { Chart } from "./usagechart";

/** Use shows the usage and the ratings of a skill. */
export function Use({ look: { skill } }: { look: Looked }) {
  return (
    <div class="stack loose">
      {can(skill, "usage.read") ? <Days skill={skill.id} /> : <p class="note">{msg("skill.noUsage")}</p>}
      <div class="halves">
        {can(skill, "skill.delete") && (
          <section class="card stack">
            <h2>{msg("skill.usedBy")}</h2>
            <p class="small muted">{msg("skill.usedByText")}</p>
            <References skill={skill.id} />
          </section>
        )}
        <section class="card stack">
          <h2>{msg("skill.ratings")}</h2>
          <Ratings skill={skill} />
        </section>
      </div>
    </div>
  );
}

const spans = [30, 90, 365] as const;

function Days({ skill }: { skill: string }) {
  const at = useAddress();
  const days = spans.find((n) => String(n) === at.get("days")) ?? 30;
  const usage = useLoad(
    (signal) => got(api.GET("/api/v1/skills/{skill}/usage", { signal, params: { path: { skill }, query: { days } } })),
    [skill, days],
  );

  return (
    <section class="card stack">
      <div class="row">
        <h2 class="grow">{msg("skill.usage")}</h2>
        <select
          class="input library-sort"
          aria-label={msg("skill.since")}
          value={days}
          onChange={(e) => at.go({ days: e.currentTarget.value })}
        >
          {spans.map((n) => (
            <option key={n} value={n}>
              {lastDays(n)}
            </option>
          ))}
        </select>
      </div>
      <Shown asked={usage} waiting={msg("skill.waitingUsage")}>
        {({ items }) =>
          items.length ? (
            <>
              <Totals days={items} />
              <Chart days={items} since={days} />
            </>
          ) : (
            <p class="muted">{msg("skill.notUsed", { n: days })}</p>
          )
        }
      </Shown>
    </section>
  );
}

function Totals({ days }: { days: Schema["Day"][] }) {
  const sum = (of: "loads" | "calls" | "errors" | "tokens") => days.reduce((n, day) => n + day[of], 0);

  const facts: [string, string][] = [
    [msg("skill.loads"), count(sum("loads"))],
    [msg("skill.calls"), count(sum("calls"))],
    [msg("skill.errors"), count(sum("errors"))],
    [msg("skill.tokensSpent"), short(sum("tokens"))],
  ];
  return (
    <dl class="library-totals">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function References({ skill }: { skill: string }) {
  const references = useLoad(
    (signal) => got(api.GET("/api/v1/skills/{skill}/references", { signal, params: { path: { skill } } })),
    [skill],
  );
  return (
    <Shown asked={references} waiting={msg("skill.waitingReferences")}>
      {(r) => <ReferenceList references={r} />}
    </Shown>
  );
}

function Ratings({ skill }: { skill: Schema["SkillDetail"] }) {
  const person = useUserNames();
  const ratings = usePages(
    (after, signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/ratings", { signal, params: { path: { skill: skill.id }, query: { after } } }),
      ),
    [skill.id, skill.rating?.stars, skill.rating?.count],
  );

  if (ratings.error) return <Problem error={ratings.error} />;
  return (
    <>
      {ratings.data && !ratings.data.length && (
        <p class="muted">{can(skill, "skill.rate") ? msg("skill.noRatings") : msg("skill.noRatingsOwn")}</p>
      )}
      <ul class="library-lines">
        {ratings.data?.map((r) => (
          <li key={r.user} class="stack tight">
            <div class="row">
              <Given stars={r.stars} />
              <span class="grow">{person(r.user)}</span>
              <span class="small muted">
                <When time={r.updated} />
              </span>
            </div>
            {r.words && <p class="library-words">{r.words}</p>}
          </li>
        ))}
      </ul>
      <More pages={ratings} />
    </>
  );
}

function Given({ stars }: { stars: number }) {
  return (
    <span class="library-given" role="img" aria-label={msg("skill.nStars", { n: stars })}>
      {[1, 2, 3, 4, 5].map((n) => (
        <span key={n} class={n <= stars ? "on" : ""}>
          <Icon name="star" size={14} />
        </span>
      ))}
    </span>
  );
}
