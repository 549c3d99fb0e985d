import type { Schema } from "../api/client";
import { count } from "../words";
import { d } from "./words-detail";

type Day = Schema["Day"];

const height = 120;
const step = 10;

/** The days from a number of days ago until today, in UTC as the hub counts them, with those on which nothing was used. */
function filled(days: Day[], since: number): Day[] {
  const known = new Map(days.map((day) => [day.date, day]));
  const today = Date.now();
  return Array.from({ length: since }, (_, i) => {
    const date = new Date(today - (since - 1 - i) * 86_400_000).toISOString().slice(0, 10);
    return known.get(date) ?? { date, loads: 0, calls: 0, errors: 0, tokens: 0 };
  });
}

/** Use by day as bars: loads below, calls above them. The same is a table for who does not see bars. */
export function Chart({ days, since }: { days: Day[]; since: number }) {
  const all = filled(days, since);
  const most = Math.max(1, ...all.map((day) => day.loads + day.calls));
  const high = (n: number) => (n / most) * height;
  const t = d();
  return (
    <figure class="stack tight">
      <svg class="library-chart" viewBox={`0 0 ${all.length * step} ${height}`} preserveAspectRatio="none" role="img" aria-label={t.chart(since, most)}>
        {all.map((day, i) => (
          <g key={day.date}>
            <title>{t.onDay(day.date, day.loads, day.calls)}</title>
            <rect class="room" x={i * step} y={0} width={step} height={height} />
            <rect class="loads" x={i * step + 1} y={height - high(day.loads)} width={step - 2} height={high(day.loads)} />
            <rect class="calls" x={i * step + 1} y={height - high(day.loads + day.calls)} width={step - 2} height={high(day.calls)} />
          </g>
        ))}
      </svg>
      <figcaption class="row small muted"><span>{all[0]!.date}</span><span class="library-key loads">{t.loads}</span><span class="library-key calls">{t.calls}</span><span class="push">{t.today}</span></figcaption>
      <details class="small">
        <summary>{t.asTable}</summary>
        <div class="table-wrap library-scroll" tabIndex={0} role="region" aria-label={t.usage}>
          <table class="table">
            <thead><tr><th scope="col">{t.day}</th>{[t.loads, t.calls, t.errors, t.tokensSpent].map((head) => <th key={head} scope="col" class="number">{head}</th>)}</tr></thead>
            <tbody>{[...days].reverse().map((day) => <tr key={day.date}><th scope="row">{day.date}</th>{[day.loads, day.calls, day.errors, day.tokens].map((n, i) => <td key={i} class="number">{count(n)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
