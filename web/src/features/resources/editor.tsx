import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Icon, Menu, MenuItem, Problem, Tabs, useConfirm, Waiting } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { namespaceName } from "../servers/serverlist";
import { agentOf, docOf, newDoc, pageOf, pathOf, type Kind, type ResourceRef } from "./document";
import { useDraft } from "./draft";
import type { PartProps } from "./editorprops";
import { Faults, type Fault } from "./faults";
import { Naming } from "./naming";
import { newOfKind } from "./phrases";
import { Remove } from "./remove";
import { Saving } from "./save";
import { sectionsOf } from "./sections";
import { Facts, NamedBy, Problems } from "./sidebar";
import "./resources.css";

/** EditExisting is the editor page of an existing resource. The agents of some documents have no form. */
export function EditExisting({ place, formless }: { place: ResourceRef; formless?: boolean }) {
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place), signal })),
    [place.kind, place.namespace, place.name],
  );
  if (!load.data)
    return (
      <Page title={place.name} lead={msg(`agents.kinds.${place.kind}`)}>
        {load.error ? (
          <Problem error={load.error} again={() => void load.again()} />
        ) : (
          <Waiting for={msg("agents.getting")} />
        )}
      </Page>
    );
  return (
    <Editor
      key={load.data.status.generation}
      saved={load.data}
      place={place}
      formless={formless}
      onSaved={() => void load.again()}
    />
  );
}

/** EditNew is the editor page of a new resource. */
export function EditNew({ kind, namespace }: { kind: Kind; namespace?: string }) {
  const { route } = useLocation();
  return <Editor fresh={{ kind, namespace }} onSaved={(to) => route(pageOf(to), true)} />;
}

interface EditorProps {
  saved?: Schema["Kind"];
  place?: ResourceRef;
  formless?: boolean;
  fresh?: { kind: Kind; namespace?: string };
  onSaved: (place: ResourceRef) => void;
}

function Editor({ saved, place, formless, fresh, onSaved }: EditorProps) {
  const { route, query } = useLocation();
  const kind = (place ?? fresh!).kind;
  const [base] = useState(() => (saved ? docOf(saved) : newDoc(kind, fresh?.namespace)));
  const draft = useDraft(place ? pageOf(place) : `new ${kind}`, base, saved?.status.generation);
  const [faults, setFaults] = useState<Fault[]>([]);
  const [removing, remove] = useState(false);
  const may = (action: string) => !saved || !!saved.status.can?.includes(action);
  const talks = (kind === "Ghost" || kind === "Bot" || kind === "Team") && may("kind.use");
  const profile = useLoad(
    async (signal) =>
      place && talks
        ? got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/profile", { params: pathOf(place), signal }))
        : undefined,
    [],
  );
  const referrers = useLoad(
    async (signal) =>
      place
        ? got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(place), signal }))
        : undefined,
    [],
  );
  const changes = may(kind === "Model" || kind === "MCPServer" ? "server.apply" : "kind.apply");
  const part: PartProps = { draft, place, profile: profile.data, base, readOnly: !changes };
  const actions = place && (
    <>
      {talks && (
        <a
          class={draft.dirty || query.tab === "document" ? "button" : "button primary"}
          href={`/?agent=${encodeURIComponent(agentOf(place))}`}
        >
          <Icon name="chat" />
          {msg("agents.talk")}
        </a>
      )}
      {talks && !formless && (
        <a
          class="button"
          href={`/agents/edit/${encodeURIComponent(place.namespace)}/${encodeURIComponent(place.name)}?kind=${kind}`}
        >
          {msg("agents.openForm")}
        </a>
      )}
      {may("kind.delete") && (
        <Menu label={msg("agents.actions")}>
          <MenuItem danger onClick={() => remove(true)}>
            {msg("agents.delete")}
          </MenuItem>
        </Menu>
      )}
    </>
  );
  const lead = place ? (
    <>
      <a href={kind === "MCPServer" ? pageOf(place) : `/agents?kind=${kind}`}>{msg(`agents.kinds.${kind}`)}</a> ·{" "}
      {namespaceName(place.namespace)}
    </>
  ) : (
    msg(`agents.about.${kind}`)
  );
  return (
    <Page
      title={place ? place.name : newOfKind(msg(`agents.kinds.${kind}`))}
      lead={lead}
      actions={actions || undefined}
    >
      <Faults.Provider value={faults}>
        {removing && place && (
          <Remove
            place={place}
            onClose={() => remove(false)}
            onGone={() => {
              draft.drop();
              route(kind === "MCPServer" ? "/servers" : `/agents?kind=${kind}`, true);
            }}
          />
        )}
        {!changes && <p class="note">{msg("agents.readOnly")}</p>}
        <Refusals faults={faults} />
        {!place && <Naming {...part} />}
        <div class={place ? "columns" : "agents-new"}>
          <Sections {...part} onSaved={onSaved} />
          {place && (
            <aside class="stack">
              {talks && <Problems profile={profile} />}
              {referrers.data && <NamedBy referrers={referrers.data} />}
              {saved && <Facts saved={saved} />}
            </aside>
          )}
        </div>
        {changes && <SaveBar {...part} onFaults={setFaults} onSaved={onSaved} />}
      </Faults.Provider>
    </Page>
  );
}

/** Refusals lists all faults of the hub above the fields that also show them. */
export function Refusals({ faults }: { faults: Fault[] }) {
  const wrong = faults.filter((f) => f.severity === "error");
  if (!wrong.length) return null;
  return (
    <div class="note bad" role="alert">
      <strong>{msg("agents.notSavedYet")}</strong>
      <ul>
        {wrong.map((f, i) => (
          <li key={i}>
            {f.path && <code>{f.path} </code>}
            {f.message}
            {f.fix && <span class="muted"> {f.fix}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Sections(part: PartProps & { onSaved: (place: ResourceRef) => void }) {
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
  return (
    <Tabs
      label={msg("agents.parts")}
      tabs={all.map((s) => [s.id, msg(`agents.tabs.${s.id}`)])}
      open={open.id}
      onOpen={go}
    >
      {open.draw(part)}
    </Tabs>
  );
}

interface BarProps extends PartProps {
  onFaults: (faults: Fault[]) => void;
  onSaved: (place: ResourceRef) => void;
}

/** SaveBar shows that there are unsaved changes, and saves them. */
function SaveBar({ draft, place, onFaults, onSaved }: BarProps) {
  const [saving, save] = useState(false);
  const confirm = useConfirm();
  const [saved, keep] = useState<Schema["Kind"]>(); // the saved document when the review opens
  if (!draft.dirty && place) return null;
  const look = async () => {
    if (place) keep((await api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place) })).data);
    save(true);
  };
  const finish = (to: ResourceRef) => {
    save(false);
    draft.drop();
    onFaults([]);
    onSaved(to);
  };
  return (
    <div class={place ? "agents-bar" : "agents-bar agents-new"} role="region" aria-label={msg("agents.unsaved")}>
      <span class="grow">{place ? msg("agents.unsaved") : msg("agents.notMadeYet")}</span>
      {draft.dirty && (
        <Button
          onClick={() =>
            confirm.ask({
              title: msg("agents.discardTitle"),
              children: msg("agents.discardText"),
              yes: msg("agents.discard"),
              danger: true,
              act: async () => {
                draft.drop();
                onFaults([]);
              },
            })
          }
        >
          {msg("agents.discard")}
        </Button>
      )}
      {confirm.open}
      <ActionButton look="primary" disabled={!draft.doc.metadata.name.trim()} act={look}>
        {msg("agents.look")}
      </ActionButton>
      {saving && (
        <Saving
          doc={draft.doc}
          before={saved && docOf(saved)}
          made={draft.made}
          onFaults={onFaults}
          onSaved={finish}
          onClose={() => save(false)}
        />
      )}
    </div>
  );
}
