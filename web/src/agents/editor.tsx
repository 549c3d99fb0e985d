import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { Page } from "../shell/page";
import { placeName } from "../servers/list";
import { ActionButton, Button, Icon, Menu, MenuItem, Problem, Tabs, Waiting } from "../ui";
import { Naming } from "./basics";
import { Facts, NamedBy, Problems } from "./beside";
import { agentOf, docOf, newDoc, pageOf, pathOf, type Kind, type Place } from "./document";
import { useDraft } from "./draft";
import { Faults, type Fault } from "./faults";
import type { PartProps } from "./parts";
import { Remove } from "./remove";
import { Saving } from "./saving";
import { sectionsOf } from "./sections";
import { w } from "./words";
import "./agents.css";

/** The page of one thing that is there, by its place. */
export function EditExisting({ place }: { place: Place }) {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place), signal })), [place.kind, place.namespace, place.name]);
  if (!asked.data) return <Page title={place.name} lead={t.kinds[place.kind]}>{asked.error ? <Problem error={asked.error} again={() => void asked.again()} /> : <Waiting for={t.getting} />}</Page>;
  return <Editor key={asked.data.status.generation} kept={asked.data} place={place} onSaved={() => void asked.again()} />;
}

/** The page on which a new thing of a kind is written. */
export function EditNew({ kind, namespace }: { kind: Kind; namespace?: string }) {
  const { route } = useLocation();
  return <Editor fresh={{ kind, namespace }} onSaved={(to) => route(pageOf(to), true)} />;
}

interface EditorProps {
  kept?: Schema["Kind"];
  place?: Place;
  fresh?: { kind: Kind; namespace?: string };
  onSaved: (place: Place) => void;
}

function Editor({ kept, place, fresh, onSaved }: EditorProps) {
  const t = w();
  const { route, query } = useLocation();
  const kind = (place ?? fresh!).kind;
  const [base] = useState(() => (kept ? docOf(kept) : newDoc(kind, fresh?.namespace)));
  const draft = useDraft(place ? pageOf(place) : `new ${kind}`, base, kept?.status.generation);
  const [faults, setFaults] = useState<Fault[]>([]);
  const [removing, remove] = useState(false);
  const talks = kind === "Ghost" || kind === "Bot" || kind === "Team";
  const profile = useAsked(async (signal) => (place && talks ? got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/profile", { params: pathOf(place), signal })) : undefined), []);
  const referrers = useAsked(async (signal) => (place ? got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(place), signal })) : undefined), []);
  const part: PartProps = { draft, place, profile: profile.data, base };
  const actions = place && (
    <>
      {talks && <a class={draft.dirty || query.tab === "document" ? "button" : "button primary"} href={`/?agent=${encodeURIComponent(agentOf(place))}`}><Icon name="chat" />{t.talk}</a>}
      <Menu label={t.actions}><MenuItem danger onClick={() => remove(true)}>{t.delete}</MenuItem></Menu>
    </>
  );
  const lead = place ? <><a href={kind === "MCPServer" ? pageOf(place) : `/agents?kind=${kind}`}>{t.kinds[kind]}</a> · {placeName(place.namespace)}</> : t.about[kind];
  return (
    <Page title={place ? place.name : t.newOne(t.kinds[kind])} lead={lead} actions={actions || undefined}>
      <Faults.Provider value={faults}>
        {removing && place && <Remove place={place} onClose={() => remove(false)} onGone={() => { draft.drop(); route(kind === "MCPServer" ? "/servers" : `/agents?kind=${kind}`, true); }} />}
        <Refusals faults={faults} />
        {!place && <Naming {...part} />}
        <div class={place ? "columns" : "agents-new"}>
          <Sections {...part} onSaved={onSaved} />
          {place && <aside class="stack">{talks && <Problems profile={profile} />}{referrers.data && <NamedBy referrers={referrers.data} />}{kept && <Facts kept={kept} />}</aside>}
        </div>
        <SaveBar {...part} onFaults={setFaults} onSaved={onSaved} />
      </Faults.Provider>
    </Page>
  );
}

/** All that the hub refused, above the fields that it is shown at. */
function Refusals({ faults }: { faults: Fault[] }) {
  const wrong = faults.filter((f) => f.severity === "error");
  if (!wrong.length) return null;
  return <div class="note bad" role="alert"><strong>{w().notSavedYet}</strong><ul>{wrong.map((f, i) => <li key={i}>{f.path && <code>{f.path} </code>}{f.message}{f.fix && <span class="muted"> {f.fix}</span>}</li>)}</ul></div>;
}

function Sections(part: PartProps & { onSaved: (place: Place) => void }) {
  const t = w();
  const { path, query, route } = useLocation();
  const kind = part.draft.doc.kind;
  const all = sectionsOf(kind, !part.place);
  const open = all.find((s) => s.id === query.tab) ?? all[0]!;
  const go = (id: string) => {
    const next = new URLSearchParams(query);
    next.set("tab", id);
    route(`${path}?${next}`, true);
  };
  if (all.length === 1) return <>{open.draw(part)}</>;
  return <Tabs label={t.parts} tabs={all.map((s) => [s.id, t.tabs[s.id]])} open={open.id} onOpen={go}>{open.draw(part)}</Tabs>;
}

interface BarProps extends PartProps {
  onFaults: (faults: Fault[]) => void;
  onSaved: (place: Place) => void;
}

/** Says that something is not saved yet, and leads to saving it. */
function SaveBar({ draft, place, onFaults, onSaved }: BarProps) {
  const t = w();
  const [saving, save] = useState(false);
  const [kept, keep] = useState<Schema["Kind"]>(); // as it is when the changes are looked at
  if (!draft.dirty && place) return null;
  const look = async () => {
    if (place) keep((await api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place) })).data);
    save(true);
  };
  const saved = (to: Place) => {
    save(false);
    draft.drop();
    onFaults([]);
    onSaved(to);
  };
  return (
    <div class={place ? "agents-bar" : "agents-bar agents-new"} role="region" aria-label={t.unsaved}>
      <span class="grow">{place ? t.unsaved : t.notMadeYet}</span>
      {draft.dirty && <Button onClick={() => { draft.drop(); onFaults([]); }}>{t.discard}</Button>}
      <ActionButton look="primary" disabled={!draft.doc.metadata.name.trim()} act={look}>{t.look}</ActionButton>
      {saving && <Saving doc={draft.doc} before={kept && docOf(kept)} made={draft.made} onFaults={onFaults} onSaved={saved} onClose={() => save(false)} />}
    </div>
  );
}
