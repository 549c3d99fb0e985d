import { useLocation } from "preact-iso";
import { useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Empty, Icon, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { MySignIns } from "./mysignins";
import { useQuietly } from "./refresh";
import { allServers, missingOf } from "./serverlists";
import { SignInButton, wantsSignIn } from "./signin";
import { href, StandingTag, type Server } from "./state";

/** needs reports whether a server needs attention. */
const needs = (s: Server) =>
  (s.state !== "ready" && s.state !== "disabled") ||
  !!s.held?.length ||
  s.live?.state === "DEAD" ||
  s.live?.state === "DEGRADED" ||
  wantsSignIn(s);

const groupOf = (s: Server) => (!s.kind ? "operator" : s.kind === "MCPServer" ? "MCPServer" : "Ghost");

/** List shows all visible MCP servers and refreshes itself. */
export function List() {
  const load = useLoad(allServers, []);
  const missing = useLoad((signal) => missingOf(load.data ?? [], signal), [load.data?.map((s) => s.digest).join()]);
  const known = (s: Server): Server => {
    const lacks = s.state === "ready" ? missing.data?.get(s.digest) : undefined;
    return lacks ? { ...s, state: "not_configured", missing: lacks } : s;
  };
  useQuietly(load.again);
  const add = (
    <a class="button primary" href="/servers/new">
      <Icon name="plus" />
      {msg("servers.add")}
    </a>
  );
  return (
    <Page title={msg("servers.title")} lead={msg("servers.lead")} actions={load.data?.length ? add : undefined}>
      <Shown asked={load} waiting={msg("servers.getting")}>
        {(all) =>
          all.length ? (
            <Filtered all={all.map(known)} />
          ) : (
            <Empty title={msg("servers.nothing")} actions={add}>
              {msg("servers.nothingSays")}
            </Empty>
          )
        }
      </Shown>
      <MySignIns />
    </Page>
  );
}

function Filtered({ all }: { all: Server[] }) {
  const { query, route, path } = useLocation();
  const q = query.q ?? "";
  const only = query.show === "attention";
  const go = (to: { q?: string; show?: string }) => {
    const next = new URLSearchParams(
      Object.entries({ q, show: only ? "attention" : "", ...to }).filter(([, v]) => v) as [string, string][],
    );
    route(path + (next.size ? `?${next}` : ""), true);
  };
  const attention = all.filter(needs);
  const found = (only ? attention : all).filter((s) =>
    `${s.name} ${s.target} ${s.thing ?? ""}`.toLowerCase().includes(q.toLowerCase()),
  );
  return (
    <>
      <div class="row">
        <input
          class="input servers-search"
          type="search"
          aria-label={msg("servers.search")}
          placeholder={msg("servers.search")}
          value={q}
          onInput={(e) => go({ q: e.currentTarget.value })}
        />
        <div class="servers-show" role="group" aria-label={msg("servers.show")}>
          <button type="button" class="button small" aria-pressed={!only} onClick={() => go({ show: "" })}>
            {msg("servers.all", { n: all.length })}
          </button>
          <button type="button" class="button small" aria-pressed={only} onClick={() => go({ show: "attention" })}>
            {msg("servers.attention", { n: attention.length })}
          </button>
        </div>
      </div>
      {found.length === 0 && (
        <Empty
          title={msg("servers.noneFound")}
          actions={
            <button type="button" class="button" onClick={() => go({ q: "", show: "" })}>
              {msg("servers.showAll")}
            </button>
          }
        >
          {msg("servers.noneFoundSays")}
        </Empty>
      )}
      {(["operator", "MCPServer", "Ghost"] as const).map((g) => (
        <Group key={g} group={g} servers={found.filter((s) => groupOf(s) === g)} />
      ))}
    </>
  );
}

function Group({ group, servers }: { group: "operator" | "MCPServer" | "Ghost"; servers: Server[] }) {
  if (!servers.length) return null;
  return (
    <section class="stack tight">
      <h2>{msg(`servers.groups.${group}`)}</h2>
      <p class="small muted">{msg(`servers.groupSays.${group}`)}</p>
      <ul class="servers-list">
        {servers.map((s) => (
          <Row key={href(s)} server={s} />
        ))}
      </ul>
    </section>
  );
}

function Row({ server: s }: { server: Server }) {
  const problem = wantsSignIn(s) ? "" : s.live?.error || (s.review?.decision === "rejected" ? s.review.note : "");
  return (
    <li>
      <a class="servers-name" href={href(s)}>
        {s.name}
      </a>
      <span class="mono small muted truncate" title={s.target}>
        {s.target}
      </span>
      <span class="small muted truncate">
        {s.kind && s.kind !== "MCPServer" && `${msg("servers.ofAgent", { name: s.thing ?? "" })} · `}
        {s.kind && namespaceName(s.namespace)}
      </span>
      <span class="row servers-state">
        {!!s.held?.length && <span class="tag warn">{msg("servers.heldCount", { count: s.held.length })}</span>}
        {s.live?.state === "READY" && (
          <span class="small muted">{msg("servers.toolCount", { count: s.live.tools })}</span>
        )}
        <StandingTag server={s} />
        {wantsSignIn(s) && (
          <span class="servers-act">
            <SignInButton small server={s} />
          </span>
        )}
      </span>
      {problem && <span class="small servers-problem">{problem}</span>}
    </li>
  );
}

/** namespaceName names the owner of a namespace. */
export function namespaceName(namespace: string | undefined): string {
  return !namespace || namespace === "default"
    ? msg("servers.own")
    : namespace === "public"
      ? msg("servers.everybody")
      : namespace;
}
