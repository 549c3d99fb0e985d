import { useState } from "preact/hooks";
import { useScopes } from "../../features/skills/namespaces";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin, me, ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Check, Dialog, failed, Problem, Shown } from "../../shared/ui";

/** Defaults selects the users whose conversations start with the skill. */
export function Defaults({ skill, onClose }: { skill: Schema["SkillDetail"]; onClose: () => void }) {
  const scopes = useScopes().filter(([n]) => mayChange(n));

  return (
    <Dialog
      title={msg("skill.defaultsTitle")}
      onClose={onClose}
      actions={<Button onClick={onClose}>{msg("skill.close")}</Button>}
    >
      <p class="muted">{msg("skill.defaultsText")}</p>
      <ul class="library-lines">
        {scopes.map(([n, name]) => (
          <li key={n}>
            <Scope skill={skill} namespace={n} name={name} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

const mayChange = (n: string) =>
  n.startsWith("user:") || (n === "public" ? isAdmin.value : hasRole(n.slice("group:".length), "developer"));

/** usable reports whether the users of a namespace can load a skill. Otherwise, it cannot be a default there. */
function usable(skill: Schema["SkillDetail"], namespace: string): boolean {
  const groups = namespace.startsWith("user:") ? (me.value?.groups ?? []).map((g) => `group:${g.group}`) : [];
  const reached = [namespace, ...groups, "public", "hub", "bundled"];
  return ways.value?.mode === "single" || reached.some((n) => skill.listings.includes(n));
}

function Scope({ skill, namespace, name }: { skill: Schema["SkillDetail"]; namespace: string; name: string }) {
  const [error, setError] = useState<Error>();
  const query = { namespace };
  const load = useLoad(
    async (signal) => {
      const all = await got(api.GET("/api/v1/defaults", { signal, params: { query } }));
      return { now: all.items.find((one) => one.skill_id === skill.id) };
    },
    [namespace],
  );
  const path = { skill: skill.id };
  const again = (work: Promise<unknown>) => work.then(() => setError(undefined), setError).then(load.again);
  const put = (forcePreload: boolean, was?: Schema["Default"]) =>
    again(
      got(
        api.PUT("/api/v1/defaults/{skill}", {
          params: { path, query },
          body: { forcePreload, exceptions: was?.exceptions ?? [] },
        }),
      ),
    );
  const remove = () => again(got(api.DELETE("/api/v1/defaults/{skill}", { params: { path, query } })));

  return (
    <Shown asked={load} waiting={name}>
      {({ now }) => (
        <div class="stack tight">
          <div class="row">
            <strong class="grow">{name}</strong>
            {now ? (
              <ActionButton small act={remove} label={msg("skill.noDefaultFor", { n: name })}>
                {msg("skill.noDefault")}
              </ActionButton>
            ) : usable(skill, namespace) ? (
              <ActionButton small act={() => put(false)} label={msg("skill.defaultFor", { n: name })}>
                {msg("skill.makeDefaultNow")}
              </ActionButton>
            ) : (
              <span class="small muted">{msg("skill.notPublishedThere")}</span>
            )}
          </div>
          {now && (
            <Check
              label={msg("skill.preload")}
              hint={msg("skill.preloadHint")}
              checked={now.forcePreload}
              onCheck={(on) => void put(on, now).catch(failed)}
            />
          )}
          {error && <Problem error={error} />}
        </div>
      )}
    </Shown>
  );
}
