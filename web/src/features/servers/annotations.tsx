import { findMsg, msg } from "../../shared/i18n/messages";
import { uses, type Config } from "./config";

/** Promises lists the values that a draft server would get, and the parts of it that get them. */
export function Promises({ config, saved }: { config: Config; saved?: boolean }) {
  const found = uses(config);
  if (!found.length) return null;
  return (
    <ul class="servers-uses small">
      {found.map((u) => (
        <li key={`${u.kind}${u.name}${u.where}`}>
          {findMsg("servers.kinds", u.kind)} <code>{u.name}</code> → <code>{u.where}</code>
        </li>
      ))}
      {!saved && <li class="muted">{msg("servers.usesLater")}</li>}
    </ul>
  );
}
