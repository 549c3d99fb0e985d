import { useLoad, type Schema } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";
import { translateProblem } from "../../shared/servertext";
import { Button, Shown, Tag } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

interface Health {
  ready: boolean;
  text: string;
  parts: [name: string, state: string][];
}

/** look loads /readyz: lines such as "database: ok", or the reason why the node is not ready. */
async function look(signal: AbortSignal): Promise<Health> {
  const response = await fetch("/readyz", { signal });
  const text = await response.text();
  if (!response.ok) {
    const problem = JSON.parse(text) as Schema["Problem"];
    const { detail, next } = translateProblem(problem);
    return { ready: false, text: [detail, next].filter(Boolean).join(". "), parts: [] };
  }
  const parts = [...text.matchAll(/^(\w+): (.*)$/gm)].map((m): [string, string] => [m[1]!, m[2]!]);
  return { ready: true, text: "", parts };
}

/** version loads the program version from the metrics, which administrators may read. */
async function version(signal: AbortSignal): Promise<string> {
  const response = await fetch("/metrics", { signal });
  if (!response.ok) return "";
  return /^loadout_build_info\{version="([^"]*)"/m.exec(await response.text())?.[1] ?? "";
}

/** Health shows the state of the node that answers. */
export function Health() {
  const load = useLoad(look, []);
  const build = useLoad(version, []);
  return (
    <Part
      title={msg("admin.tabs.health")}
      lead={msg("admin.healthText")}
      action={
        <Button icon="again" onClick={() => void load.again()}>
          {msg("admin.ask")}
        </Button>
      }
    >
      <Shown asked={load}>
        {(h) => (
          <>
            <p class="row" role="status">
              <Tag look={h.ready ? "good" : "bad"}>{h.ready ? msg("admin.ready") : msg("admin.notReady")}</Tag> {h.text}
            </p>
            <dl class="facts">
              {h.parts.map(([name, state]) => (
                <>
                  <dt>{findMsg("admin.parts", name) ?? name}</dt>
                  <dd>{state === "ok" ? <Tag look="good">ok</Tag> : <Tag look="warn">{state}</Tag>}</dd>
                </>
              ))}
              {build.data && (
                <>
                  <dt>{msg("admin.version")}</dt>
                  <dd class="mono">{build.data}</dd>
                </>
              )}
              <dt>{msg("admin.mode")}</dt>
              <dd>{findMsg("admin.modes", ways.value?.mode ?? "")}</dd>
              <dt>{msg("admin.provider")}</dt>
              <dd>{ways.value?.provider ? msg("admin.yes") : msg("admin.no")}</dd>
              <dt>{msg("admin.address")}</dt>
              <dd class="mono">{location.origin}</dd>
            </dl>
            <p class="small muted">{msg("admin.metrics")}</p>
          </>
        )}
      </Shown>
    </Part>
  );
}
