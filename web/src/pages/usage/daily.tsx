import {
  amount,
  formatAmountShort,
  dayName,
  fillDays,
  formatAmount,
  formatTokens,
  type Total,
  type View,
  type Measure,
} from "../../features/usage/totals";
import { count, dollars } from "../../shared/i18n/format";
import { messagesOf, msg } from "../../shared/i18n/messages";
import { SelectField, TableWrap } from "../../shared/ui";
import { Bars } from "./chart";

/** Daily shows the usage by day: one measure as bars, all measures as a table. */
export function Daily({
  items,
  view,
  onShow,
}: {
  items: Total[];
  view: View;
  onShow: (change: Partial<View>) => void;
}) {
  const days = fillDays(items, view.days);
  const points = days.map((d) => ({ name: dayName(d.day), value: d.spent ? amount(d.spent, view.measure) : 0 }));
  const most = points.reduce((a, b) => (b.value > a.value ? b : a), points[0]!);
  const total = points.reduce((sum, p) => sum + p.value, 0);
  const what = msg(`usage.measures.${view.measure}`);
  const title =
    total > 0
      ? msg("usage.chart", {
          what,
          total: formatAmount(total, view.measure),
          most: formatAmount(most.value, view.measure),
          when: most.name,
        })
      : msg("usage.chartNone", { what });
  return (
    <section class="stack">
      <div class="row top">
        <h2 class="grow">{msg("usage.byDay")}</h2>
        <div class="usage-measure">
          <SelectField
            label={msg("usage.measure")}
            value={view.measure}
            onText={(m) => onShow({ measure: m as Measure })}
            options={messagesOf("usage.measures")}
          />
        </div>
      </div>
      <div class="card stack">
        {total > 0 ? (
          <Bars title={title} points={points} say={(n) => formatAmountShort(n, view.measure)} />
        ) : (
          <p class="muted">
            {view.measure === "cost"
              ? msg("usage.noPrice")
              : view.measure === "tokens" && items.some((d) => d.untold)
                ? msg("usage.noneKnown")
                : msg("usage.noneYet")}
          </p>
        )}
        <details>
          <summary class="small">{msg("usage.asTable")}</summary>
          <Table items={items} />
        </details>
      </div>
      <p class="small muted">{msg("usage.utc")}</p>
    </section>
  );
}

function Table({ items }: { items: Total[] }) {
  return (
    <TableWrap label={msg("usage.byDay")}>
      <table class="table usage-table">
        <thead>
          <tr>
            <th scope="col">{msg("usage.day")}</th>
            {[
              msg("usage.measures.turns"),
              msg("usage.measures.loads"),
              msg("usage.measures.calls"),
              msg("usage.measures.errors"),
              msg("usage.measures.tokens"),
              msg("usage.measures.cost"),
            ].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.toReversed().map((d) => (
            <tr key={d.day}>
              <th scope="row">{d.day}</th>
              {[...[d.turns, d.loads, d.calls, d.errors].map(count), formatTokens(d)].map((n, i) => (
                <td key={i} class="number">
                  {n}
                </td>
              ))}
              <td class="number">{d.cost === undefined ? "–" : dollars(d.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableWrap>
  );
}
