import { href, type Server } from "./state";
import { w } from "./words";

/** The values that a server has none of, and where they are given. */
export function Missing({ server, elsewhere }: { server: Server; elsewhere?: boolean }) {
  const t = w();
  if (!server.missing?.length) return null;
  const known = (server.uses ?? []).filter((u) => server.missing!.some((m) => m.includes(`.${u.name}}}`)));
  const others = server.missing.filter((m) => !known.some((u) => m.includes(`.${u.name}}}`))); // as of an environment, of which the hub says what to do
  return (
    <div class={elsewhere ? "note warn small" : "stack tight small"}>
      {known.map((u) => <span key={u.kind + u.name + u.where}>{t.noValue(u.name, u.where)}</span>)}
      {others.map((m) => <span key={m}>{m}</span>)}
      {elsewhere && known.length > 0 && <a href={href(server) + "#variables"}>{t.giveThere}</a>}
    </div>
  );
}
