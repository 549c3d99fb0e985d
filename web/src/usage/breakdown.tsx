import { personName, placeName, usePeople } from "../account/people";
import { useAsked } from "../api/client";
import { Shown, TableWrap, Tabs } from "../ui";
import { count } from "../words";
import { Share } from "./chart";
import { dollars, tokensOf, tokensSaid, type Total, totals, type View } from "./spent";
import { w } from "./words";

type By = View["by"];

/** What was taken by each model, agent or person, those with most tokens first. */
export function Breakdown({ view, onShow }: { view: View; onShow: (change: Partial<View>) => void }) {
  const t = w();
  const views: [By, string][] = [["model", t.byWords.model!], ["agent", t.byWords.agent!], ["user", t.byWords.user!]];
  return (
    <section class="stack">
      <h2>{t.by}</h2>
      <Tabs<By> label={t.by} tabs={views} open={view.by} onOpen={(by) => onShow({ by })}><Parts view={view} /></Tabs>
    </section>
  );
}

function Parts({ view }: { view: View }) {
  usePeople();
  const t = w();
  const asked = useAsked((signal) => totals(view, view.by, signal), [view.by, view.days, view.of]);
  return (
    <Shown asked={asked}>
      {({ items, more, by }) => {
        const most = Math.max(0, ...items.map(tokensOf));
        return (
          <div class="stack">
            <TableWrap label={t.by}>
              <table class="table usage-table">
                <thead><tr><th scope="col">{t[by as By]}</th><th scope="col" class="number">{t.measures.tokens}</th><th scope="col"><span class="visually-hidden">{t.measures.tokens}</span></th>{[t.measures.turns, t.measures.loads, t.measures.calls, t.measures.errors, t.measures.cost].map((name) => <th key={name} scope="col" class="number">{name}</th>)}</tr></thead>
                <tbody>{items.map((i, n) => <Row key={n} item={i} by={by as By} most={most} />)}</tbody>
              </table>
            </TableWrap>
            {more && <p class="small muted">{t.more}</p>}
          </div>
        );
      }}
    </Shown>
  );
}

function Row({ item, by, most }: { item: Total; by: By; most: number }) {
  return (
    <tr>
      <th scope="row"><Name item={item} by={by} /></th>
      <td class="number">{tokensSaid(item)}</td>
      <td class="usage-share-cell"><Share value={tokensOf(item)} most={most} /></td>
      {[item.turns, item.loads, item.calls, item.errors].map((n, i) => <td key={i} class="number">{count(n)}</td>)}
      <td class="number">{item.cost === undefined ? "–" : dollars(item.cost)}</td>
    </tr>
  );
}

function Name({ item, by }: { item: Total; by: By }) {
  const t = w();
  if (by === "model") return item.model ? <span class="mono">{item.model}</span> : <>{t.noModel}</>;
  if (by === "user") return <>{item.user_name || (item.user ? personName(item.user) : t.gone)}</>;
  if (!item.agent) return <span class="muted">{t.noAgent}</span>;
  return <>{item.agent} {item.namespace && <span class="small muted">{placeName(item.namespace)}</span>}</>;
}
