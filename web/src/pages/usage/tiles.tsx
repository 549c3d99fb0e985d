import { percent, type TokenUse, tokensOf } from "../../features/usage/totals";
import { count, dollars, short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";

/** tokens describes the token counts and what is missing from them. */
function tokens(s: TokenUse): string {
  const { input, output = 0, cache_read = 0, cache_write = 0, untold } = s;
  const known = input !== undefined && [
    msg("usage.tokensOf", { input: short(input + cache_write), output: short(output) }),
    cache_read > 0 && msg("usage.cached", { n: short(cache_read) }),
  ];
  return [known, !!untold && msg("usage.untold", { count: untold })].flat().filter(Boolean).join(msg("usage.comma"));
}

/** Tiles shows the totals. */
export function Tiles({ total }: { total: TokenUse }) {
  const rate = total.calls > 0 ? percent(total.errors / total.calls) : "";
  const tiles: [name: string, value: string, more: string][] = [
    [msg("usage.measures.turns"), count(total.turns), ""],
    [msg("usage.measures.loads"), count(total.loads), ""],
    [msg("usage.measures.calls"), count(total.calls), ""],
    [msg("usage.measures.errors"), count(total.errors), rate && msg("usage.errorRate", { part: rate })],
    [msg("usage.measures.tokens"), total.input === undefined ? "–" : short(tokensOf(total)), tokens(total)],
    [
      msg("usage.measures.cost"),
      total.cost === undefined ? "–" : dollars(total.cost),
      total.cost === undefined
        ? msg("usage.noPrice")
        : total.unpriced
          ? msg("usage.unpriced", { n: short(total.unpriced) })
          : "",
    ],
  ];
  return (
    <dl class="usage-tiles">
      {tiles.map(([name, value, more]) => (
        <div key={name} class="card">
          <dt>{name}</dt>
          <dd>
            <span class="usage-number">{value}</span>
            {more && <span class="small muted">{more}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
