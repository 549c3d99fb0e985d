import type { Schema } from "../api/client";
import { d } from "./words-detail";

/** What a skill asks for, in words, each kind together. */
export function Asks({ asks }: { asks: Schema["DiffAsk"][] }) {
  const t = d();
  const kinds = [...new Set(asks.map((a) => a.kind))];
  return (
    <ul class="library-asks">
      {kinds.map((kind) => (
        <li key={kind}>
          <strong>{t.asks[kind as keyof typeof t.asks] ?? kind}</strong>
          <ul>{asks.filter((a) => a.kind === kind).map((a) => <li key={a.name}><Ask ask={a} /></li>)}</ul>
        </li>
      ))}
    </ul>
  );
}

/** Names that stand for the one thing that a kind can be say nothing more. */
const plain = new Set(["scripts run", "provider run", "workspace write"]);

/** What there is to say of a server, without the digest by which one that was changed is told from another. */
export const unsealed = (text: string) => text.replace(/ \(configuration [0-9a-f]+\)$/, "");

function Ask({ ask }: { ask: Schema["DiffAsk"] }) {
  const t = d();
  const name = plain.has(`${ask.kind} ${ask.name}`) ? t.asked[ask.kind as keyof typeof t.asked] : undefined;
  return (
    <>
      {name ?? <code>{ask.name}</code>}
      {ask.old && ask.new ? <span class="muted"> {t.became(ask.old, ask.new)}</span> : (ask.new || ask.old) && <span class="muted"> {unsealed(ask.new || ask.old || "")}</span>}
    </>
  );
}
