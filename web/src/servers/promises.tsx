import { uses, type Config } from "./config";
import { w } from "./words";

/** The values that a server would get, by their names, and what would get them. */
export function Promises({ config, saved }: { config: Config; saved?: boolean }) {
  const t = w();
  const found = uses(config);
  if (!found.length) return null;
  return (
    <ul class="servers-uses small">
      {found.map((u) => <li key={`${u.kind}${u.name}${u.where}`}>{t.kinds[u.kind]} <code>{u.name}</code> → <code>{u.where}</code></li>)}
      {!saved && <li class="muted">{t.usesLater}</li>}
    </ul>
  );
}
