import { tokensOf, formatTokens, type Total, totals, type View } from "../../features/usage/totals";
import { userName, namespaceName, useUserNames } from "../../features/users/users";
import { useLoad } from "../../shared/api/client";
import { count, dollars } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Shown, TableWrap, Tabs } from "../../shared/ui";
import { Share } from "./chart";

type By = View["by"];

/** Breakdown shows the usage by model, agent or user, highest first. */
export function Breakdown({ view, onShow }: { view: View; onShow: (change: Partial<View>) => void }) {
  const views: [By, string][] = [
    ["model", msg("usage.byWords.model")],
    ["agent", msg("usage.byWords.agent")],
    ["user", msg("usage.byWords.user")],
  ];
  return (
    <section class="stack">
      <h2>{msg("usage.by")}</h2>
      <Tabs<By> label={msg("usage.by")} tabs={views} open={view.by} onOpen={(by) => onShow({ by })}>
        <Parts view={view} />
      </Tabs>
    </section>
  );
}

function Parts({ view }: { view: View }) {
  useUserNames();

  const asked = useLoad((signal) => totals(view, view.by, signal), [view.by, view.days, view.of]);
  return (
    <Shown asked={asked}>
      {({ items, more, by }) => {
        const most = Math.max(0, ...items.map(tokensOf));
        return (
          <div class="stack">
            <TableWrap label={msg("usage.by")}>
              <table class="table usage-table">
                <thead>
                  <tr>
                    <th scope="col">{msg(`usage.${by as By}`)}</th>
                    <th scope="col" class="number">
                      {msg("usage.measures.tokens")}
                    </th>
                    <th scope="col">
                      <span class="visually-hidden">{msg("usage.measures.tokens")}</span>
                    </th>
                    {[
                      msg("usage.measures.turns"),
                      msg("usage.measures.loads"),
                      msg("usage.measures.calls"),
                      msg("usage.measures.errors"),
                      msg("usage.measures.cost"),
                    ].map((name) => (
                      <th key={name} scope="col" class="number">
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {items.map((i, n) => (
                    <Row key={n} item={i} by={by as By} most={most} />
                  ))}
                </tbody>
              </table>
            </TableWrap>
            {more && <p class="small muted">{msg("usage.more")}</p>}
          </div>
        );
      }}
    </Shown>
  );
}

function Row({ item, by, most }: { item: Total; by: By; most: number }) {
  return (
    <tr>
      <th scope="row">
        <Name item={item} by={by} />
      </th>
      <td class="number">{formatTokens(item)}</td>
      <td class="usage-share-cell">
        <Share value={tokensOf(item)} most={most} />
      </td>
      {[item.turns, item.loads, item.calls, item.errors].map((n, i) => (
        <td key={i} class="number">
          {count(n)}
        </td>
      ))}
      <td class="number">{item.cost === undefined ? "–" : dollars(item.cost)}</td>
    </tr>
  );
}

function Name({ item, by }: { item: Total; by: By }) {
  if (by === "model") return item.model ? <span class="mono">{item.model}</span> : <>{msg("usage.noModel")}</>;
  if (by === "user") return <>{item.user_name || (item.user ? userName(item.user) : msg("usage.gone"))}</>;
  if (!item.agent) return <span class="muted">{msg("usage.noAgent")}</span>;
  return (
    <>
      {item.agent} {item.namespace && <span class="small muted">{namespaceName(item.namespace)}</span>}
    </>
  );
}
