import { useId } from "preact/hooks";
import { dollars } from "../../features/usage/totals";
import { api, got, type Schema, useAsked } from "../../shared/api/client";
import { count, short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done } from "../../shared/ui";
import { Known } from "./knowndetails";

/** UsagePart shows the usage of a conversation, and compacts it. */
export function UsagePart({ id, at, turns }: { id: string; at: number; turns: number }) {
  const asked = useAsked(
    (signal) => got(api.GET("/api/v1/sessions/{session}/usage", { params: { path: { session: id } }, signal })),
    [id, at],
  );
  const compact = async () => {
    await got(api.POST("/api/v1/sessions/{session}/compact", { params: { path: { session: id } } }));
    done(msg("chat.compactSent"));
  };
  return (
    <section>
      <h2>{msg("chat.usage")}</h2>
      <Known asked={asked}>
        {(spent) =>
          Object.keys({ ...spent.models, ...spent.untold }).length ? (
            <>
              <Room context={spent.context} />
              <Models spent={spent} />
            </>
          ) : (
            <p class="small muted">{msg("chat.noUsage")}</p>
          )
        }
      </Known>
      {turns > 0 && (
        <>
          <div>
            <ActionButton small act={compact}>
              {msg("chat.compact")}
            </ActionButton>
          </div>
          <p class="small muted">{msg("chat.compactHint")}</p>
        </>
      )}
    </section>
  );
}

/** Room shows how much of the context window is used. */
function Room({ context }: { context?: Schema["Context"] }) {
  const id = useId();
  if (!context) return null;
  const all = context.window;
  const tokens = context.request + context.answer;
  return (
    <div class="chat-room">
      {all ? (
        <label for={id} class="small muted">
          {msg("chat.context")}
        </label>
      ) : (
        <span class="small muted">{msg("chat.context")}</span>
      )}
      <span class="small number">
        {all ? msg("chat.contextOf", { used: short(tokens), all: short(all) }) : msg("chat.tokens", { count: tokens })}
      </span>
      {!!all && <progress id={id} class="progress" value={Math.min(tokens, all)} max={all} />}
    </div>
  );
}

/** Models shows the usage and cost of each model. */
function Models({ spent }: { spent: Schema["Spent"] }) {
  const untold = Object.values(spent.untold ?? {}).reduce((sum, n) => sum + n, 0);
  return (
    <>
      <table class="table chat-usage">
        <thead>
          <tr>
            <th scope="col">{msg("chat.model")}</th>
            <th scope="col" class="number">
              {msg("chat.read")}
            </th>
            <th scope="col" class="number">
              {msg("chat.written")}
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(spent.models).map(([model, u]) => (
            <tr key={model}>
              <th scope="row" class="truncate" title={model}>
                {model}
              </th>
              <td class="number" title={count(u.input + u.cache_read + u.cache_write)}>
                {short(u.input + u.cache_read + u.cache_write)}
              </td>
              <td class="number" title={count(u.output)}>
                {short(u.output)}
              </td>
            </tr>
          ))}
          {Object.keys(spent.untold ?? {})
            .filter((model) => !spent.models[model])
            .map((model) => (
              <tr key={model}>
                <th scope="row" class="truncate" title={model}>
                  {model}
                </th>
                <td class="number">–</td>
                <td class="number">–</td>
              </tr>
            ))}
        </tbody>
      </table>
      {!!untold && <p class="small muted">{msg("chat.untold", { count: untold })}</p>}
      {spent.cost !== undefined && (
        <p class="small">
          {msg("chat.cost")}: <strong>{dollars(spent.cost)}</strong>
          {!!spent.unpriced && <span class="muted"> {msg("chat.unpriced", { count: spent.unpriced })}</span>}
        </p>
      )}
    </>
  );
}
