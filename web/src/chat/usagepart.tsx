import { useId } from "preact/hooks";
import { api, got, type Schema, useAsked } from "../api/client";
import { dollars } from "../usage/spent";
import { ActionButton, done } from "../ui";
import { count, short } from "../words";
import { Known } from "./known";
import { w } from "./words";

/** What the models of a conversation took, and what gives the model room again. */
export function UsagePart({ id, at, turns }: { id: string; at: number; turns: number }) {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/sessions/{session}/usage", { params: { path: { session: id } }, signal })), [id, at]);
  const compact = async () => {
    await got(api.POST("/api/v1/sessions/{session}/compact", { params: { path: { session: id } } }));
    done(t.compactSent);
  };
  return (
    <section>
      <h2>{t.usage}</h2>
      <Known asked={asked}>
        {(spent) => (Object.keys({ ...spent.models, ...spent.untold }).length ? <><Room context={spent.context} /><Models spent={spent} /></> : <p class="small muted">{t.noUsage}</p>)}
      </Known>
      {turns > 0 && <><div><ActionButton small act={compact}>{t.compact}</ActionButton></div><p class="small muted">{t.compactHint}</p></>}
    </section>
  );
}

/** How much of what the model takes at once is in use. */
function Room({ context }: { context?: Schema["Context"] }) {
  const t = w();
  const id = useId();
  if (!context) return null;
  const all = context.window;
  const tokens = context.request + context.answer;
  return (
    <div class="chat-room">
      {all ? <label for={id} class="small muted">{t.context}</label> : <span class="small muted">{t.context}</span>}
      <span class="small number">{all ? t.contextOf(short(tokens), short(all)) : t.tokens(tokens)}</span>
      {!!all && <progress id={id} class="progress" value={Math.min(tokens, all)} max={all} />}
    </div>
  );
}

/** What each model took, and what that cost where prices are known. */
function Models({ spent }: { spent: Schema["Spent"] }) {
  const t = w();
  const untold = Object.values(spent.untold ?? {}).reduce((sum, n) => sum + n, 0);
  return (
    <>
      <table class="table chat-usage">
        <thead><tr><th scope="col">{t.model}</th><th scope="col" class="number">{t.read}</th><th scope="col" class="number">{t.written}</th></tr></thead>
        <tbody>
          {Object.entries(spent.models).map(([model, u]) => (
            <tr key={model}>
              <th scope="row" class="truncate" title={model}>{model}</th>
              <td class="number" title={count(u.input + u.cache_read + u.cache_write)}>{short(u.input + u.cache_read + u.cache_write)}</td>
              <td class="number" title={count(u.output)}>{short(u.output)}</td>
            </tr>
          ))}
          {Object.keys(spent.untold ?? {}).filter((model) => !spent.models[model]).map((model) => (
            <tr key={model}>
              <th scope="row" class="truncate" title={model}>{model}</th>
              <td class="number">–</td>
              <td class="number">–</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!!untold && <p class="small muted">{t.untold(untold)}</p>}
      {spent.cost !== undefined && (
        <p class="small">
          {t.cost}: <strong>{dollars(spent.cost)}</strong>
          {!!spent.unpriced && <span class="muted"> {t.unpriced(spent.unpriced)}</span>}
        </p>
      )}
    </>
  );
}
