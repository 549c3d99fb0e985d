import { useEffect } from "preact/hooks";
import { api, got, useAsked } from "../api/client";
import { Page } from "../shell/page";
import { ActionButton, done, Empty, Problem, Tag, Waiting, When } from "../ui";
import { allServers, missingOf, serversOf } from "./all";
import { Held } from "./held";
import { placeName } from "./list";
import { Missing } from "./missing";
import { useQuietly } from "./quietly";
import { Review } from "./review";
import { SignIn, SignInButton, wantsSignIn } from "./signin";
import { w as signWords } from "./signwords";
import { definedAt, standing, trialOf, type Server } from "./state";
import { TrialButton, TrialResult, useTrial } from "./trial";
import { Variables } from "./variables";
import { w } from "./words";

interface Which {
  kind?: string;
  namespace?: string;
  thing?: string;
  name: string;
}

async function one(of: Which, signal: AbortSignal): Promise<Server | null> {
  const all = of.kind ? await serversOf(of.kind, of.namespace!, of.thing!, signal) : (await allServers(signal)).filter((s) => !s.kind);
  const found = all.find((s) => s.name === of.name);
  if (!found) return null;
  const missing = found.state === "ready" ? (await missingOf([found], signal)).get(found.digest) : undefined;
  return missing ? { ...found, state: "not_configured", missing } : found;
}

/** One server: how it is with it, what it offers, and what somebody has to decide. */
export function Detail(of: Which) {
  const t = w();
  const asked = useAsked((signal) => one(of, signal), [of.kind, of.namespace, of.thing, of.name]);
  useQuietly(asked.again);
  if (asked.data === null) return <Page title={of.name}><Empty title={t.gone} actions={<a class="button primary" href="/servers">{t.back}</a>}>{t.goneSays}</Empty></Page>;
  if (!asked.data) return <Page title={of.name}>{asked.error ? <Problem error={asked.error} again={() => void asked.again()} /> : <Waiting for={t.gettingOne} />}</Page>;
  return <Known server={asked.data} again={() => void asked.again()} error={asked.error} />;
}

function Known({ server, again, error }: { server: Server; again: () => void; error?: Error }) {
  const t = w();
  const trial = useTrial(trialOf(server));
  // A test may be the first to find out that it wants a sign-in.
  const s: Server = trial.tried?.signIn && !server.signIn ? { ...server, signIn: { state: "needed" } } : server;
  const decides = (s.review && s.review.decision !== "approved") || !!s.held?.length;
  const remote = !s.command && !!s.urls?.length;
  useEffect(() => {
    if (remote && s.state === "ready") void trial.run(); // what is only an address starts nothing
  }, [s.digest, s.state, s.signIn?.state === "signed_in"]);
  const edit = definedAt(s);
  const actions = (
    <>
      {edit && <a class="button" href={edit}>{s.kind === "MCPServer" ? t.edit : t.openAgent}</a>}
      <ActionButton icon="again" act={() => restart(s).then(again)}>{t.restart}</ActionButton>
      <TrialButton trial={trial} primary={!decides && !wantsSignIn(s)} />
    </>
  );
  return (
    <Page title={s.name} lead={<a href="/servers">{t.back}</a>} actions={actions}>
      {error && <Problem error={error} again={again} />}
      <div class="columns">
        <div class="stack loose">
          <State server={s} failed={trial.tried?.success === false && !trial.tried.signIn} />
          <SignIn server={s} onChange={again} />
          <Held server={s} onChange={again} />
          <Review server={s} onChange={again} />
          <Variables server={s} onChange={again} />
          <section class="stack tight">
            <h2>{t.tools}</h2>
            {!trial.tried && !trial.busy && !trial.error && <p class="muted">{t.testSays}</p>}
            {trial.tried?.signIn ? <p class="muted">{signWords().toolsLater}</p> : <TrialResult trial={trial} />}
          </section>
        </div>
        <Facts server={s} />
      </div>
    </Page>
  );
}

async function restart(s: Server) {
  const answer = s.kind
    ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/restart", { params: { path: { kind: s.kind as "Ghost", namespace: s.namespace!, name: s.thing! } }, body: { server: s.name } })
    : api.POST("/api/v1/servers/operator/{name}/restart", { params: { path: { name: s.name } } });
  const { servers } = await got(answer);
  done(w().restarted(servers));
}

/** How it is with it now, in words, and everything that went wrong. */
function State({ server: s, failed }: { server: Server; failed: boolean }) {
  const t = w();
  // A test says more than a connection that nobody has, and is newer than one that was there.
  const { look, word, says } = failed ? { look: "bad" as const, word: t.lastTestFailed, says: t.testFailedSays } : standing(s);
  return (
    <section class={`note ${look === "accent" ? "" : look}`} aria-live="polite">
      <p class="row"><Tag look={look}>{word}</Tag>{s.state === "ready" && s.live && <span class="small muted">{t.since}<When time={s.live.since} /></span>}</p>
      <p>{says}</p>
      {wantsSignIn(s) && <div><SignInButton server={s} /></div>}
      <Missing server={s} />
      {s.live?.error && !wantsSignIn(s) && <><h2 class="servers-small">{t.lastError}</h2><pre class="servers-text">{s.live.error}</pre></>}
      {!!s.live?.warnings?.length && <><h2 class="servers-small">{t.warnings}</h2><ul>{s.live.warnings.map((m) => <li key={m}>{m}</li>)}</ul></>}
    </section>
  );
}

function Facts({ server: s }: { server: Server }) {
  const t = w();
  const live = s.live;
  return (
    <aside class="card stack" aria-label={s.name}>
      <dl class="facts">
        <dt>{t.from}</dt><dd>{!s.kind ? t.operator : s.kind === "MCPServer" ? placeName(s.namespace) : `${t.ofAgent(s.kind, s.thing ?? "")} (${placeName(s.namespace)})`}</dd>
        <dt>{t.target}</dt><dd class="mono">{s.urls?.length ? s.urls.join(" ") : s.target}</dd>
        <dt>{t.digest}</dt><dd class="mono">{s.digest.slice(0, 19)}…</dd>
      </dl>
      {live && (
        <>
          <h2 class="servers-small">{t.live}</h2>
          <dl class="facts">
            <dt>{t.node}</dt><dd class="mono">{live.node}</dd>
            <dt>{t.tools}</dt><dd>{live.tools}</dd>
            {live.transport && <><dt>{t.transport}</dt><dd>{live.transport}{live.era && ` (${t.eras[live.era]})`}</dd></>}
            {!!live.latency_ms && <><dt>{t.latency}</dt><dd>{t.ms(live.latency_ms)}</dd></>}
            <dt>{t.connections}</dt><dd>{live.connections}</dd>
            <dt>{t.conversations}</dt><dd>{live.conversations}</dd>
          </dl>
        </>
      )}
    </aside>
  );
}
