import { useLocation } from "preact-iso";
import { useAsked } from "../api/client";
import { Page } from "../shell/page";
import { Empty, Icon, Shown } from "../ui";
import { allServers, missingOf } from "./all";
import { MySignIns } from "./mine";
import { useQuietly } from "./quietly";
import { SignInButton, wantsSignIn } from "./signin";
import { href, StandingTag, type Server } from "./state";
import { w } from "./words";

/** Whether somebody has to do something about a server. */
const needs = (s: Server) => (s.state !== "ready" && s.state !== "disabled") || !!s.held?.length || s.live?.state === "DEAD" || s.live?.state === "DEGRADED" || wantsSignIn(s);

const groupOf = (s: Server) => (!s.kind ? "operator" : s.kind === "MCPServer" ? "MCPServer" : "Ghost");

/** All MCP servers that one sees, kept up to date while they are looked at. */
export function List() {
  const t = w();
  const asked = useAsked(allServers, []);
  const missing = useAsked((signal) => missingOf(asked.data ?? [], signal), [asked.data?.map((s) => s.digest).join()]);
  const known = (s: Server): Server => {
    const lacks = s.state === "ready" ? missing.data?.get(s.digest) : undefined;
    return lacks ? { ...s, state: "not_configured", missing: lacks } : s;
  };
  useQuietly(asked.again);
  const add = <a class="button primary" href="/servers/new"><Icon name="plus" />{t.add}</a>;
  return (
    <Page title={t.title} lead={t.lead} actions={asked.data?.length ? add : undefined}>
      <Shown asked={asked} waiting={t.getting}>
        {(all) => (all.length ? <Filtered all={all.map(known)} /> : <Empty title={t.nothing} actions={add}>{t.nothingSays}</Empty>)}
      </Shown>
      <MySignIns />
    </Page>
  );
}

function Filtered({ all }: { all: Server[] }) {
  const t = w();
  const { query, route, path } = useLocation();
  const q = query.q ?? "";
  const only = query.show === "attention";
  const go = (to: { q?: string; show?: string }) => {
    const next = new URLSearchParams(Object.entries({ q, show: only ? "attention" : "", ...to }).filter(([, v]) => v) as [string, string][]);
    route(path + (next.size ? `?${next}` : ""), true);
  };
  const attention = all.filter(needs);
  const found = (only ? attention : all).filter((s) => `${s.name} ${s.target} ${s.thing ?? ""}`.toLowerCase().includes(q.toLowerCase()));
  return (
    <>
      <div class="row">
        <input class="input servers-search" type="search" aria-label={t.search} placeholder={t.search} value={q} onInput={(e) => go({ q: e.currentTarget.value })} />
        <div class="servers-show" role="group" aria-label={t.show}>
          <button type="button" class="button small" aria-pressed={!only} onClick={() => go({ show: "" })}>{t.all(all.length)}</button>
          <button type="button" class="button small" aria-pressed={only} onClick={() => go({ show: "attention" })}>{t.attention(attention.length)}</button>
        </div>
      </div>
      {found.length === 0 && <Empty title={t.noneFound} actions={<button type="button" class="button" onClick={() => go({ q: "", show: "" })}>{t.showAll}</button>}>{t.noneFoundSays}</Empty>}
      {(["operator", "MCPServer", "Ghost"] as const).map((g) => <Group key={g} group={g} servers={found.filter((s) => groupOf(s) === g)} />)}
    </>
  );
}

function Group({ group, servers }: { group: "operator" | "MCPServer" | "Ghost"; servers: Server[] }) {
  const t = w();
  if (!servers.length) return null;
  return (
    <section class="stack tight">
      <h2>{t.groups[group]}</h2>
      <p class="small muted">{t.groupSays[group]}</p>
      <ul class="servers-list">{servers.map((s) => <Row key={href(s)} server={s} />)}</ul>
    </section>
  );
}

function Row({ server: s }: { server: Server }) {
  const t = w();
  const problem = wantsSignIn(s) ? "" : s.live?.error || (s.review?.decision === "rejected" ? s.review.note : "");
  return (
    <li>
      <a class="servers-name" href={href(s)}>{s.name}</a>
      <span class="mono small muted truncate" title={s.target}>{s.target}</span>
      <span class="small muted truncate">{s.kind && s.kind !== "MCPServer" && `${t.ofAgent(s.kind, s.thing ?? "")} · `}{s.kind && placeName(s.namespace)}</span>
      <span class="row servers-state">
        {!!s.held?.length && <span class="tag warn">{t.heldCount(s.held.length)}</span>}
        {s.live?.state === "READY" && <span class="small muted">{t.toolCount(s.live.tools)}</span>}
        <StandingTag server={s} />
        {wantsSignIn(s) && <span class="servers-act"><SignInButton small server={s} /></span>}
      </span>
      {problem && <span class="small servers-problem">{problem}</span>}
    </li>
  );
}

/** Whose a namespace is, in words. */
export function placeName(namespace: string | undefined): string {
  const t = w();
  return !namespace || namespace === "default" ? t.own : namespace === "public" ? t.everybody : namespace;
}
