import { useAsked, type Schema } from "../api/client";
import { ways } from "../api/me";
import { toldProblem } from "../told";
import { Button, Shown, Tag } from "../ui";
import { Part } from "../settings/sections";
import { w } from "./words";

interface Health {
  ready: boolean;
  text: string;
  parts: [name: string, state: string][];
}

/** What /readyz says: lines as "database: ok", or, where it is not ready, why. */
async function look(signal: AbortSignal): Promise<Health> {
  const response = await fetch("/readyz", { signal });
  const text = await response.text();
  if (!response.ok) {
    const problem = JSON.parse(text) as Schema["Problem"];
    const { detail, next } = toldProblem(problem);
    return { ready: false, text: [detail, next].filter(Boolean).join(". "), parts: [] };
  }
  const parts = [...text.matchAll(/^(\w+): (.*)$/gm)].map((m): [string, string] => [m[1]!, m[2]!]);
  return { ready: true, text: "", parts };
}

/** Which program this is: the metrics say it, which administrators may read. */
async function version(signal: AbortSignal): Promise<string> {
  const response = await fetch("/metrics", { signal });
  if (!response.ok) return "";
  return /^loadout_build_info\{version="([^"]*)"/m.exec(await response.text())?.[1] ?? "";
}

/** How the node is that answers. */
export function Health() {
  const t = w();
  const asked = useAsked(look, []);
  const build = useAsked(version, []);
  return (
    <Part title={t.tabs.health} lead={t.healthText} action={<Button icon="again" onClick={() => void asked.again()}>{t.ask}</Button>}>
      <Shown asked={asked}>
        {(h) => (
          <>
            <p class="row" role="status"><Tag look={h.ready ? "good" : "bad"}>{h.ready ? t.ready : t.notReady}</Tag> {h.text}</p>
            <dl class="facts">
              {h.parts.map(([name, state]) => <><dt>{t.parts[name] ?? name}</dt><dd>{state === "ok" ? <Tag look="good">ok</Tag> : <Tag look="warn">{state}</Tag>}</dd></>)}
              {build.data && <><dt>{t.version}</dt><dd class="mono">{build.data}</dd></>}
              <dt>{t.mode}</dt><dd>{t.modes[ways.value?.mode ?? ""]}</dd>
              <dt>{t.provider}</dt><dd>{ways.value?.provider ? t.yes : t.no}</dd>
              <dt>{t.address}</dt><dd class="mono">{location.origin}</dd>
            </dl>
            <p class="small muted">{t.metrics}</p>
          </>
        )}
      </Shown>
    </Part>
  );
}
