import { namespaceName, useUserNames } from "../../features/users/users";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { count, size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Shown } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import "./storage.css";

/** Storage shows what the user and their groups store, and the limits. */
export function Storage() {
  const { user, groups } = me.value!;
  useUserNames();
  return (
    <Part title={msg("settings.tabs.storage")} lead={msg("settings.storageText")}>
      {[`user:${user.id}`, ...groups.map((g) => `group:${g.group}`)].map((n) => (
        <Owner key={n} namespace={n} own={n === `user:${user.id}`} />
      ))}
    </Part>
  );
}

function Owner({ namespace, own }: { namespace: string; own: boolean }) {
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/usage/storage", { signal, params: { query: { namespace } } })),
    [namespace],
  );
  return (
    <section class="stack tight">
      <h3>{own ? msg("settings.storageOwn") : namespaceName(namespace)}</h3>
      <Shown asked={load}>{(s) => <Amounts storage={s} own={own} />}</Shown>
    </section>
  );
}

function Amounts({ storage: { used, limits }, own }: { storage: Schema["Storage"]; own: boolean }) {
  const full = (["bytes", "skills", "sessions"] as const).some((m) => limits[m] > 0 && used[m] >= 0.9 * limits[m]);
  return (
    <>
      <dl class="storage">
        <Amount name={msg("settings.storageBytes")} used={used.bytes} limit={limits.bytes} format={size} />
        <Amount name={msg("settings.storageSkills")} used={used.skills} limit={limits.skills} format={count} />
        {own && (
          <Amount name={msg("settings.storageSessions")} used={used.sessions} limit={limits.sessions} format={count} />
        )}
      </dl>
      {full && <p class="note warn">{msg("settings.storageFull")}</p>}
    </>
  );
}

interface AmountProps {
  name: string;
  used: number;
  limit: number;
  format: (n: number) => string;
}

/** Amount shows a bar if there is a limit. */
function Amount({ name, used, limit, format }: AmountProps) {
  const text =
    limit > 0
      ? msg("settings.storageOf", { used: format(used), limit: format(limit) })
      : msg("settings.storageUnlimited", { used: format(used) });
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {limit > 0 && (
          <meter aria-label={name} min={0} max={limit} high={0.9 * limit} optimum={0} value={Math.min(used, limit)} />
        )}
        <span>{text}</span>
      </dd>
    </div>
  );
}
