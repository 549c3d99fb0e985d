import { useEffect } from "preact/hooks";
import { Missing } from "../../features/servers/missingvalues";
import { mayTest } from "../../features/servers/owners";
import { milliseconds, restarted } from "../../features/servers/phrases";
import { useQuietly } from "../../features/servers/refresh";
import { namespaceName } from "../../features/servers/serverlist";
import { allServers, missingOf, serversOf } from "../../features/servers/serverlists";
import { SignIn, SignInButton, wantsSignIn } from "../../features/servers/signin";
import { definedAt, describeState, trialOf, type Server } from "../../features/servers/state";
import { TrialButton, TrialResult, useTrial } from "../../features/servers/trial";
import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, Empty, Problem, Tag, Waiting, When } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { ChangedTools } from "./changedtools";
import { PublishedSkills } from "./publishedskills";
import { Review } from "./review";
import { Variables } from "./variables";

interface Which {
  kind?: string;
  namespace?: string;
  thing?: string;
  name: string;
}

/** A server, and whether the user may test and restart it. */
interface Found {
  server: Server;
  tests: boolean;
}

async function one(of: Which, signal: AbortSignal): Promise<Found | null> {
  const all = of.kind
    ? await serversOf(of.kind, of.namespace!, of.thing!, signal)
    : (await allServers(signal)).filter((s) => !s.kind);
  const found = all.find((s) => s.name === of.name);
  if (!found) return null;
  const missing = found.state === "ready" ? (await missingOf([found], signal)).get(found.digest) : undefined;
  const server: Server = missing ? { ...found, state: "not_configured", missing } : found;
  return { server, tests: await mayTest(server) };
}

/** Detail is the page of a server. */
export function Detail(of: Which) {
  const load = useLoad((signal) => one(of, signal), [of.kind, of.namespace, of.thing, of.name]);
  useQuietly(load.again);
  if (load.data === null)
    return (
      <Page title={of.name}>
        <Empty
          title={msg("servers.gone")}
          actions={
            <a class="button primary" href="/servers">
              {msg("servers.back")}
            </a>
          }
        >
          {msg("servers.goneSays")}
        </Empty>
      </Page>
    );
  if (!load.data)
    return (
      <Page title={of.name}>
        {load.error ? (
          <Problem error={load.error} again={() => void load.again()} />
        ) : (
          <Waiting for={msg("servers.gettingOne")} />
        )}
      </Page>
    );
  return <Known {...load.data} again={() => void load.again()} error={load.error} />;
}

function Known({ server, tests, again, error }: Found & { again: () => void; error?: Error }) {
  const trial = useTrial(trialOf(server));
  // A test may be the first to find that a sign-in is needed.
  const s: Server = trial.tried?.signIn && !server.signIn ? { ...server, signIn: { state: "needed" } } : server;
  const decides = (s.review && s.review.decision !== "approved") || !!s.held?.length;
  const remote = !s.command && !!s.urls?.length;
  useEffect(() => {
    if (tests && remote && s.state === "ready") void trial.run(); // connecting to an address starts no program
  }, [s.digest, s.state, s.signIn?.state === "signed_in"]);
  const edit = definedAt(s);
  const actions = (
    <>
      {edit && (
        <a class="button" href={edit}>
          {s.kind === "MCPServer" ? msg("servers.edit") : msg("servers.openAgent")}
        </a>
      )}
      {tests && (
        <>
          <ActionButton icon="again" act={() => restart(s).then(again)}>
            {msg("servers.restart")}
          </ActionButton>
          <TrialButton trial={trial} primary={!decides && !wantsSignIn(s)} />
        </>
      )}
    </>
  );
  return (
    <Page title={s.name} lead={<a href="/servers">{msg("servers.back")}</a>} actions={actions}>
      {error && <Problem error={error} again={again} />}
      <div class="columns">
        <div class="stack loose">
          <State server={s} failed={trial.tried?.success === false && !trial.tried.signIn} />
          <SignIn server={s} onChange={again} />
          <ChangedTools server={s} onChange={again} />
          <Review server={s} onChange={again} />
          <Variables server={s} onChange={again} />
          {s.skills && s.state !== "disabled" && <PublishedSkills label={s.skills.label} server={s} />}
          <section class="stack tight">
            <h2>{msg("servers.tools")}</h2>
            {!trial.tried && !trial.busy && !trial.error && (
              <p class="muted">{msg(tests ? "servers.testSays" : "servers.mayNotTest")}</p>
            )}
            {trial.tried?.signIn ? (
              <p class="muted">{msg("serverSignIn.toolsLater")}</p>
            ) : (
              <TrialResult trial={trial} />
            )}
          </section>
        </div>
        <Facts server={s} />
      </div>
    </Page>
  );
}

async function restart(s: Server) {
  const answer = s.kind
    ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/restart", {
        params: { path: { kind: s.kind as "Ghost", namespace: s.namespace!, name: s.thing! } },
        body: { server: s.name },
      })
    : api.POST("/api/v1/servers/operator/{name}/restart", { params: { path: { name: s.name } } });
  const { servers } = await got(answer);
  done(restarted(servers));
}

/** State shows the state of a server and its errors. */
function State({ server: s, failed }: { server: Server; failed: boolean }) {
  // A failed test says more than an unused or older connection.
  const { look, word, says } = failed
    ? { look: "bad" as const, word: msg("servers.lastTestFailed"), says: msg("servers.testFailedSays") }
    : describeState(s);
  return (
    <section class={`note ${look === "accent" ? "" : look}`} aria-live="polite">
      <p class="row">
        <Tag look={look}>{word}</Tag>
        {s.state === "ready" && s.live && (
          <span class="small muted">
            {msg("servers.since")}
            <When time={s.live.since} />
          </span>
        )}
      </p>
      <p>{says}</p>
      {wantsSignIn(s) && (
        <div>
          <SignInButton server={s} />
        </div>
      )}
      <Missing server={s} />
      {s.live?.error && !wantsSignIn(s) && (
        <>
          <h2 class="servers-small">{msg("servers.lastError")}</h2>
          <pre class="servers-text">{s.live.error}</pre>
        </>
      )}
      {!!s.live?.warnings?.length && (
        <>
          <h2 class="servers-small">{msg("servers.warnings")}</h2>
          <ul>
            {s.live.warnings.map((m) => (
              <li key={m}>{m}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Facts({ server: s }: { server: Server }) {
  const live = s.live;
  return (
    <aside class="card stack" aria-label={s.name}>
      <dl class="facts">
        <dt>{msg("servers.from")}</dt>
        <dd>
          {!s.kind
            ? msg("servers.operator")
            : s.kind === "MCPServer"
              ? namespaceName(s.namespace)
              : `${msg("servers.ofAgent", { name: s.thing ?? "" })} (${namespaceName(s.namespace)})`}
        </dd>
        <dt>{msg("servers.target")}</dt>
        <dd class="mono">{s.urls?.length ? s.urls.join(" ") : s.target}</dd>
        <dt>{msg("servers.digest")}</dt>
        <dd class="mono">{s.digest.slice(0, 19)}…</dd>
      </dl>
      {live && (
        <>
          <h2 class="servers-small">{msg("servers.live")}</h2>
          <dl class="facts">
            <dt>{msg("servers.node")}</dt>
            <dd class="mono">{live.node}</dd>
            <dt>{msg("servers.tools")}</dt>
            <dd>{live.tools}</dd>
            {live.transport && (
              <>
                <dt>{msg("servers.transport")}</dt>
                <dd>
                  {live.transport}
                  {live.era && ` (${msg(`servers.eras.${live.era}`)})`}
                </dd>
              </>
            )}
            {!!live.latency_ms && (
              <>
                <dt>{msg("servers.latency")}</dt>
                <dd>{milliseconds(live.latency_ms)}</dd>
              </>
            )}
            <dt>{msg("servers.connections")}</dt>
            <dd>{live.connections}</dd>
            <dt>{msg("servers.conversations")}</dt>
            <dd>{live.conversations}</dd>
          </dl>
        </>
      )}
    </aside>
  );
}
