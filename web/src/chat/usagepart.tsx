import { api, got, useAsked } from "../api/client";
import { ActionButton, done, Shown } from "../ui";
import { count, short } from "../words";
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
      <Shown asked={asked}>
        {({ models }) => {
          const all = Object.entries(models);
          if (!all.length) return <p class="small muted">{t.noUsage}</p>;
          return (
            <table class="table chat-usage">
              <thead><tr><th scope="col">{t.model}</th><th scope="col" class="number">{t.read}</th><th scope="col" class="number">{t.written}</th></tr></thead>
              <tbody>
                {all.map(([model, u]) => (
                  <tr key={model}>
                    <th scope="row" class="truncate" title={model}>{model}</th>
                    <td class="number" title={count(u.input + u.cache_read + u.cache_write)}>{short(u.input + u.cache_read + u.cache_write)}</td>
                    <td class="number" title={count(u.output)}>{short(u.output)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          );
        }}
      </Shown>
      {turns > 0 && <><div><ActionButton small act={compact}>{t.compact}</ActionButton></div><p class="small muted">{t.compactHint}</p></>}
    </section>
  );
}
