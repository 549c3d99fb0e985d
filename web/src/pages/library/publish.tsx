import { useState } from "preact/hooks";
import { useNamespaceNames, useScopes } from "../../features/skills/namespaces";
import { api, got, Refusal, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, Problem, Tag } from "../../shared/ui";
import type { Opened } from "./opened";
import { ReferenceList } from "./references";

/** Publish shows the namespaces of a skill and publishes it to more. */
export function Publish({ skill, again, onClose }: Opened) {
  const name = useNamespaceNames();
  const [lost, setLost] = useState<{ place: string; error: Refusal }>();
  const [error, setError] = useState<Error>();

  const places = [
    ...new Set([
      ...skill.listings,
      ...useScopes()
        .map(([n]) => n)
        .filter((n) => !n.startsWith("user:")),
    ]),
  ];
  const listing = (namespace: string) => ({ params: { path: { skill: skill.id, namespace } } });
  const publish = (n: string) => async () => {
    setError(undefined);
    await got(api.PUT("/api/v1/skills/{skill}/listings/{namespace}", listing(n))).catch(setError);
    await again();
  };
  const withdraw = (n: string, force: boolean) => async () => {
    setError(undefined);
    setLost(undefined);
    try {
      await got(
        api.DELETE("/api/v1/skills/{skill}/listings/{namespace}", {
          params: { ...listing(n).params, query: { force } },
        }),
      );
    } catch (e) {
      if (e instanceof Refusal && e.problem.references) setLost({ place: n, error: e });
      else setError(e as Error);
    }
    await again();
  };
  return (
    <Dialog
      title={msg("skill.publishTitle")}
      onClose={onClose}
      actions={<Button onClick={onClose}>{msg("skill.close")}</Button>}
    >
      <p class="muted">{msg("skill.publishText")}</p>
      <ul class="library-lines">
        {places.map((n) => (
          <li key={n} class="row">
            <span class="grow">
              {name(n)} {n === skill.namespace && <Tag>{msg("skill.home")}</Tag>}
            </span>
            {skill.listings.includes(n) ? (
              n !== skill.namespace && (
                <ActionButton small act={withdraw(n, false)} label={msg("skill.withdrawFrom", { name: name(n) })}>
                  {msg("skill.withdraw")}
                </ActionButton>
              )
            ) : mayPublish(n) ? (
              <ActionButton small act={publish(n)} label={msg("skill.publishTo", { name: name(n) })}>
                {msg("skill.publishHere")}
              </ActionButton>
            ) : (
              <span class="small muted">{msg("skill.mayNot")}</span>
            )}
          </li>
        ))}
      </ul>
      {places.length < 2 && <p class="note">{msg("skill.noGroups")}</p>}
      {error && <Problem error={error} />}
      {lost && (
        <LostReferences
          place={name(lost.place)}
          references={lost.error.problem.references!}
          act={withdraw(lost.place, true)}
        />
      )}
    </Dialog>
  );
}

/** mayPublish reports whether the user may publish to a namespace. */
const mayPublish = (n: string) => (n === "public" ? isAdmin.value : hasRole(n.replace(/^group:/, ""), "developer"));

function LostReferences({
  place,
  references,
  act,
}: {
  place: string;
  references: Schema["References"];
  act: () => Promise<void>;
}) {
  return (
    <div class="note warn" role="alert">
      <strong>{msg("skill.losing", { n: place })}</strong>
      <ReferenceList references={references} />
      <div>
        <ActionButton look="danger" small act={act}>
          {msg("skill.withdrawAnyway")}
        </ActionButton>
      </div>
    </div>
  );
}
