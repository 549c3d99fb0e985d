import type { Schema } from "../../shared/api/client";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { onDay } from "./phrases";

type Day = Schema["Day"];

const height = 120;
const step = 10;

/** filled returns all days of a period that ends today in UTC. Days without usage are zero. */
function filled(days: Day[], since: number): Day[] {
  const known = new Map(days.map((day) => [day.date, day]));
  const today = Date.now();
  return Array.from({ length: since }, (_, i) => {
    const date = new Date(today - (since - 1 - i) * 86_400_000).toISOString().slice(0, 10);
    return known.get(date) ?? { date, loads: 0, calls: 0, errors: 0, tokens: 0 };
  });
}

/** Chart shows the usage by day as stacked bars, loads below calls, and as a table for screen readers. */
export function Chart({ days, since }: { days: Day[]; since: number }) {
  const all = filled(days, since);
  const most = Math.max(1, ...all.map((day) => day.loads + day.calls));
  const high = (n: number) => (n / most) * height;

  return (
    <figure class="stack tight">
      <svg
        class="library-chart"
        viewBox={`0 0 ${all.length * step} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={msg("skill.chart", { n: since, most })}
      >
        {all.map((day, i) => (
          <g key={day.date}>
            <title>{onDay(day.date, day.loads, day.calls)}</title>
            <rect class="room" x={i * step} y={0} width={step} height={height} />
            <rect
              class="loads"
              x={i * step + 1}
              y={height - high(day.loads)}
              width={step - 2}
              height={high(day.loads)}
            />
            <rect
              class="calls"
              x={i * step + 1}
              y={height - high(day.loads + day.calls)}
              width={step - 2}
              height={high(day.calls)}
            />
          </g>
        ))}
      </svg>
      <figcaption class="row small muted">
        <span>{all[0]!.date}</span>
        <span class="library-key loads">{msg("skill.loads")}</span>
        <span class="library-key calls">{msg("skill.calls")}</span>
        <span class="push">{msg("skill.today")}</span>
      </figcaption>
      <details class="small">
        <summary>{msg("skill.asTable")}</summary>
        <div class="table-wrap library-scroll" tabIndex={0} role="region" aria-label={msg("skill.usage")}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{msg("skill.day")}</th>
                {[msg("skill.loads"), msg("skill.calls"), msg("skill.errors"), msg("skill.tokensSpent")].map((head) => (
                  <th key={head} scope="col" class="number">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...days].reverse().map((day) => (
                <tr key={day.date}>
                  <th scope="row">{day.date}</th>
                  {[day.loads, day.calls, day.errors, day.tokens].map((n, i) => (
                    <td key={i} class="number">
                      {count(n)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
