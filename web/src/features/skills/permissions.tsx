import type { Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import "./permissions.css";

/** RequestedPermissions lists the requested permissions, grouped by kind. */
export function RequestedPermissions({ asks }: { asks: Schema["DiffAsk"][] }) {
  const kinds = [...new Set(asks.map((a) => a.kind))];
  return (
    <ul class="skill-asks">
      {kinds.map((kind) => (
        <li key={kind}>
          <strong>{findMsg("skill.asks", kind) ?? kind}</strong>
          <ul>
            {asks
              .filter((a) => a.kind === kind)
              .map((a) => (
                <li key={a.name}>
                  <Ask ask={a} />
                </li>
              ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

/** Permissions whose kind says everything, so their name is not shown. */
const plain = new Set(["scripts run", "provider run", "workspace write"]);

/** unsealed removes the digest from the description of a server. */
export const unsealed = (text: string) => text.replace(/ \(configuration [0-9a-f]+\)$/, "");

function Ask({ ask }: { ask: Schema["DiffAsk"] }) {
  const name = plain.has(`${ask.kind} ${ask.name}`) ? findMsg("skill.asked", ask.kind) : undefined;
  return (
    <>
      {name ?? <code>{ask.name}</code>}
      {ask.old && ask.new ? (
        <span class="muted"> {msg("skill.became", { a: ask.old, b: ask.new })}</span>
      ) : (
        (ask.new || ask.old) && <span class="muted"> {unsealed(ask.new || ask.old || "")}</span>
      )}
    </>
  );
}
