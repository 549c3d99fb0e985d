import { SelectField, TableWrap } from "../ui";
import { Bars } from "./chart";
import { count } from "../words";
import { amount, briefly, dayName, dollars, everyDay, said, tokensSaid, type Total, type View } from "./spent";
import { type Measure, w } from "./words";

/** What was taken on each day: one measure as bars, and all of them as a table. */
export function Daily({ items, view, onShow }: { items: Total[]; view: View; onShow: (change: Partial<View>) => void }) {
  const t = w();
  const days = everyDay(items, view.days);
  const points = days.map((d) => ({ name: dayName(d.day), value: d.spent ? amount(d.spent, view.measure) : 0 }));
  const most = points.reduce((a, b) => (b.value > a.value ? b : a), points[0]!);
  const total = points.reduce((sum, p) => sum + p.value, 0);
  const what = t.measures[view.measure];
  const title = total > 0 ? t.chart(what, said(total, view.measure), said(most.value, view.measure), most.name) : t.chartNone(what);
  return (
    <section class="stack">
      <div class="row top">
        <h2 class="grow">{t.byDay}</h2>
        <div class="usage-measure"><SelectField label={t.measure} value={view.measure} onText={(m) => onShow({ measure: m as Measure })} options={Object.entries(t.measures)} /></div>
      </div>
      <div class="card stack">
        {total > 0 ? <Bars title={title} points={points} say={(n) => briefly(n, view.measure)} /> : <p class="muted">{view.measure === "cost" ? t.noPrice : view.measure === "tokens" && items.some((d) => d.untold) ? t.noneKnown : t.noneYet}</p>}
        <details>
          <summary class="small">{t.asTable}</summary>
          <Table items={items} />
        </details>
      </div>
      <p class="small muted">{t.utc}</p>
    </section>
  );
}

function Table({ items }: { items: Total[] }) {
  const t = w();
  const m = t.measures;
  return (
    <TableWrap label={t.byDay}>
      <table class="table usage-table">
        <thead><tr><th scope="col">{t.day}</th>{[m.turns, m.loads, m.calls, m.errors, m.tokens, m.cost].map((name) => <th key={name} scope="col" class="number">{name}</th>)}</tr></thead>
        <tbody>
          {items.toReversed().map((d) => (
            <tr key={d.day}>
              <th scope="row">{d.day}</th>
              {[...[d.turns, d.loads, d.calls, d.errors].map(count), tokensSaid(d)].map((n, i) => <td key={i} class="number">{n}</td>)}
              <td class="number">{d.cost === undefined ? "–" : dollars(d.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableWrap>
  );
}
