import { count, short } from "../words";
import { dollars, percent, type Spent, tokensOf } from "./spent";
import { w } from "./words";

/** What the tokens are, and what is not known of them. */
function tokens(s: Spent): string {
  const t = w();
  const { input, output = 0, cache_read = 0, cache_write = 0, untold } = s;
  const known = input !== undefined && [t.tokensOf(short(input + cache_write), short(output)), cache_read > 0 && t.cached(short(cache_read))];
  return [known, !!untold && t.untold(untold)].flat().filter(Boolean).join(t.comma);
}

/** What was taken in all, each number with what it means. */
export function Tiles({ total }: { total: Spent }) {
  const t = w();
  const rate = total.calls > 0 ? percent(total.errors / total.calls) : "";
  const tiles: [name: string, value: string, more: string][] = [
    [t.measures.turns, count(total.turns), ""],
    [t.measures.loads, count(total.loads), ""],
    [t.measures.calls, count(total.calls), ""],
    [t.measures.errors, count(total.errors), rate && t.errorRate(rate)],
    [t.measures.tokens, total.input === undefined ? "–" : short(tokensOf(total)), tokens(total)],
    [t.measures.cost, total.cost === undefined ? "–" : dollars(total.cost), total.cost === undefined ? t.noPrice : total.unpriced ? t.unpriced(short(total.unpriced)) : ""],
  ];
  return (
    <dl class="usage-tiles">
      {tiles.map(([name, value, more]) => (
        <div key={name} class="card">
          <dt>{name}</dt>
          <dd><span class="usage-number">{value}</span>{more && <span class="small muted">{more}</span>}</dd>
        </div>
      ))}
    </dl>
  );
}
