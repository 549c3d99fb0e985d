import { useState } from "preact/hooks";
import { api, got, Refusal, type Schema } from "../api/client";
import { hasRole, isAdmin } from "../api/me";
import { ActionButton, Button, Dialog, Problem, Tag } from "../ui";
import type { Opened } from "./actions";
import { ReferenceList } from "./references";
import { usePlaces, useScopes } from "./places";
import { d } from "./words-detail";

/** In which namespaces a skill is seen, and where it may be shown besides. */
export function Publish({ skill, again, onClose }: Opened) {
  const name = usePlaces();
  const [lost, setLost] = useState<{ place: string; error: Refusal }>();
  const [error, setError] = useState<Error>();
  const t = d();
  const places = [...new Set([...skill.listings, ...useScopes().map(([n]) => n).filter((n) => !n.startsWith("user:"))])];
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
      await got(api.DELETE("/api/v1/skills/{skill}/listings/{namespace}", { params: { ...listing(n).params, query: { force } } }));
    } catch (e) {
      if (e instanceof Refusal && e.problem.references) setLost({ place: n, error: e });
      else setError(e as Error);
    }
    await again();
  };
  return (
    <Dialog title={t.publishTitle} onClose={onClose} actions={<Button onClick={onClose}>{t.close}</Button>}>
      <p class="muted">{t.publishText}</p>
      <ul class="library-lines">
        {places.map((n) => (
          <li key={n} class="row">
            <span class="grow">{name(n)} {n === skill.namespace && <Tag>{t.home}</Tag>}</span>
            {skill.listings.includes(n) ? (
              n !== skill.namespace && <ActionButton small act={withdraw(n, false)} label={t.withdrawFrom(name(n))}>{t.withdraw}</ActionButton>
            ) : mayPublish(n) ? (
              <ActionButton small act={publish(n)} label={t.publishTo(name(n))}>{t.publishHere}</ActionButton>
            ) : <span class="small muted">{t.mayNot}</span>}
          </li>
        ))}
      </ul>
      {places.length < 2 && <p class="note">{t.noGroups}</p>}
      {error && <Problem error={error} />}
      {lost && <Lost place={name(lost.place)} references={lost.error.problem.references!} act={withdraw(lost.place, true)} />}
    </Dialog>
  );
}

/** A place takes what somebody may upload there. */
const mayPublish = (n: string) => (n === "public" ? isAdmin.value : hasRole(n.replace(/^group:/, ""), "developer"));

function Lost({ place, references, act }: { place: string; references: Schema["References"]; act: () => Promise<void> }) {
  return (
    <div class="note warn" role="alert">
      <strong>{d().losing(place)}</strong>
      <ReferenceList references={references} />
      <div><ActionButton look="danger" small act={act}>{d().withdrawAnyway}</ActionButton></div>
    </div>
  );
}
