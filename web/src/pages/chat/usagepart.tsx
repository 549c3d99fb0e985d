import { useId } from "preact/hooks";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { count, dollars, short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done } from "../../shared/ui";
import { Known } from "./knowndetails";

/** UsagePart shows the usage of a conversation, and compacts it. */
export function UsagePart({ id, at, turns }: { id: string; at: number; turns: number }) {
  const load = useLoad(
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
      <Known load={load}>
        {(use) =>
          Object.keys({ ...use.models, ...use.untold }).length ? (
            <>
              <ContextUse context={use.context} />
              <Models use={use} />
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

/** ContextUse shows how much of the context window is used. */
function ContextUse({ context }: { context?: Schema["Context"] }) {
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
function Models({ use }: { use: Schema["Spent"] }) {
  const unreported = Object.values(use.untold ?? {}).reduce((sum, n) => sum + n, 0);
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
          {Object.entries(use.models).map(([model, u]) => (
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
          {Object.keys(use.untold ?? {})
            .filter((model) => !use.models[model])
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
      {!!unreported && <p class="small muted">{msg("chat.untold", { count: unreported })}</p>}
      {use.cost !== undefined && (
        <p class="small">
          {msg("chat.cost")}: <strong>{dollars(use.cost)}</strong>
          {!!use.unpriced && <span class="muted"> {msg("chat.unpriced", { count: use.unpriced })}</span>}
        </p>
      )}
    </>
  );
}
