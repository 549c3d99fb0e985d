import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { allAgents, type Agent, may, refOf, talkTo, withRights } from "../../features/resources/agents";
import { AgentServers } from "../../features/resources/agentservers";
import { agentOf, docOf, newDoc, type Selection } from "../../features/resources/document";
import { EditExisting, Refusals } from "../../features/resources/editor";
import type { PartProps } from "../../features/resources/editorprops";
import { Faults, type Fault } from "../../features/resources/faults";
import { Instructions } from "../../features/resources/ghost";
import { Naming } from "../../features/resources/naming";
import { Skills } from "../../features/resources/skills";
import type { TestChatPart } from "../../features/resources/testchat";
import { namespaceName } from "../../features/servers/serverlist";
import { useLoad } from "../../shared/api/client";
import { isAdmin } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Icon, Menu, MenuItem, Problem, useConfirm, Waiting } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Documents } from "./documents";
import { agentAt, formOf, versionOf } from "./form";
import { useInput, type InputState } from "./inputstate";
import { MembersField } from "./membersfield";
import { ModelField } from "./modelfield";
import { RemoveAgent } from "./removeagent";
import { saveAgent, tryAgent, type Stale } from "./saveagent";
import { TemplateList } from "./templatelist";

interface AgentFormProps {
  /** Differs for each form, and stays when a new agent is created. */
  id: string;
  /** The agent to change. */
  place?: Place;
  /** Called with the address of a created agent. */
  onCreated: (address: string) => void;
  TestChat: TestChatPart;
}

/** AgentForm is the page that makes an agent, or changes the agent of a name. */
export function AgentForm({ id, place, onCreated, TestChat }: AgentFormProps) {
  const load = useLoad(
    async (signal) => ({ ...(await loadAgents(place, signal)), place }),
    [place && JSON.stringify(place)],
  );
  const waits = place && !load.data?.place; // perhaps it was just created
  if (!load.data || (waits && load.error))
    return (
      <Page title={place?.name ?? msg("agents.newAgent")}>
        {load.error ? (
          <Problem error={load.error} again={() => void load.again()} />
        ) : (
          <Waiting for={msg("agents.getting")} />
        )}
      </Page>
    );
  const { all, saved } = load.data;
  if (place && !saved && !waits)
    return (
      <Page title={place.name}>
        <p class="note warn">{msg("agents.notThere", { name: place.name })}</p>
        <p>
          <a href="/agents">{msg("agents.title")}</a>
        </p>
      </Page>
    );
  if (saved && !formOf(saved)) return <EditExisting place={refOf(talkTo(saved))} formless />;
  return <Form id={id} saved={saved} all={all} again={load.again} onCreated={onCreated} TestChat={TestChat} />;
}

interface Place {
  namespace: string;
  name: string;
  /** The kind of one of the documents, for documents of one name that belong to different agents. */
  kind?: string;
}

/** loadAgents loads all agents, and the one at a place with what the user may do with it. */
async function loadAgents(place: Place | undefined, signal: AbortSignal): Promise<{ all: Agent[]; saved?: Agent }> {
  const all = await allAgents(signal);
  let found = place && agentAt(all, place);
  // Lists of administrators do not have the agents of other groups.
  if (place && !found && isAdmin.value) found = agentAt(await allAgents(signal, place.namespace), place);
  return { all, saved: found && (await withRights(found, signal)) };
}

const generationsOf = (a?: Agent) => [a?.ghost, a?.bot, a?.team].map((t) => t?.status.generation ?? 0).join();

interface FormProps extends Pick<AgentFormProps, "id" | "onCreated"> {
  saved?: Agent;
  all: Agent[];
  again: () => Promise<void>;
  TestChat: TestChatPart;
}

function Form({ id, saved: now, all, again, onCreated, TestChat }: FormProps) {
  const { route } = useLocation();
  const state = useInput(now ? formOf(now)! : "new", now);
  const { input, saved } = state;
  const [faults, setFaults] = useState<Fault[]>([]);
  const [stale, setStale] = useState<Stale>();
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [removing, remove] = useState(false);
  const form = useFocusOnFault(faults);
  const dropNew = useRef<() => void>(undefined); // drops the input of an agent that was created
  const isNew = !now;
  useEffect(() => () => dropNew.current?.(), []);
  useEffect(() => {
    if (isNew || !dropNew.current) return;
    dropNew.current();
    dropNew.current = undefined;
    setBusy(false);
    focusHeading();
  }, [isNew]);
  const name = input.ghost.metadata.name.trim();
  const clear = () => {
    setFaults([]);
    setStale(undefined);
    setProblem(undefined);
  };
  const save = async (over?: Stale) => {
    clear();
    if (!name) return setFaults([nameMissing()]);
    setBusy(true);
    try {
      const result = await saveAgent(input, saved, all, over);
      if (result.faults) setFaults(result.faults);
      if (result.stale) setStale(result.stale);
      if (result.saved) {
        done(now ? msg("agents.saved") : msg("agents.madeAgent", { name }));
        if (!now) {
          dropNew.current = state.drop;
          return onCreated(result.saved); // busy until it is loaded
        }
        await again();
        state.drop();
        focusHeading();
      }
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  const begin = async () => {
    clear();
    const result = await tryAgent(input, saved, all);
    if (result.session) return result.session;
    setFaults(result.faults);
    throw new Error(msg("agents.cannotTry"));
  };
  const changes = !now || may(now, "kind.apply");
  const tries = changes && (!now || may(now, "kind.use"));
  const part: PartProps = {
    draft: state.ghost,
    place: saved?.ghost && refOf(saved.ghost),
    base: saved ? docOf(saved.ghost!) : newDoc("Ghost"),
    readOnly: !changes,
  };
  return (
    <Page
      wide
      title={now ? now.name : msg("agents.newAgent")}
      lead={
        now ? (
          <>
            <a href="/agents">{msg("agents.title")}</a> · {namespaceName(now.namespace)}
          </>
        ) : (
          msg("agents.newLead")
        )
      }
      actions={now && <Actions agent={now} dirty={state.dirty} onRemove={() => remove(true)} />}
    >
      {removing && now && (
        <RemoveAgent
          agent={now}
          onClose={() => remove(false)}
          onGone={() => {
            state.drop();
            route("/agents", true);
          }}
        />
      )}
      <Faults.Provider value={faults}>
        <div class="agents-columns">
          <form
            class="agents-form"
            ref={form}
            noValidate
            onSubmit={(e) => {
              e.preventDefault();
              void save();
            }}
          >
            <div class="stack loose agents-fields">
              {!now && <TemplateList state={state} onTake={clear} />}
              {!changes && <p class="note">{msg("agents.readOnly")}</p>}
              <Refusals faults={faults} />
              {stale && <StaleNote stale={stale} onSave={() => void save(stale)} />}
              {!!problem && <Problem error={problem} />}
              <fieldset key={generationsOf(now)} class="agents-plain stack loose" disabled={!changes}>
                <Fields state={state} part={part} all={all} fresh={!now} />
              </fieldset>
              <Documents input={input} saved={saved} all={all} />
              {changes && <Bar state={state} fresh={!now} busy={busy} onDiscard={clear} />}
            </div>
          </form>
          {tries && <TestChat id={id} begin={begin} version={versionOf(input, saved, all)} />}
        </div>
      </Faults.Provider>
    </Page>
  );
}

const nameMissing = (): Fault => ({
  severity: "error",
  code: "document-name",
  message: msg("agents.needsName"),
  fix: "",
  path: "metadata.name",
});

/** focusHeading focuses the heading of the page once it is drawn, if the focused button is gone. */
const focusHeading = () =>
  void requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.querySelector<HTMLElement>("#main h1")?.focus();
  });

/** useFocusOnFault moves the focus to the first field with a fault. */
function useFocusOnFault(faults: Fault[]) {
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    if (faults.length) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [faults]);
  return form;
}

function Actions({ agent, dirty, onRemove }: { agent: Agent; dirty: boolean; onRemove: () => void }) {
  return (
    <>
      {may(agent, "kind.use") && (
        <a
          class={dirty ? "button" : "button primary"}
          href={`/?agent=${encodeURIComponent(agentOf(refOf(talkTo(agent))))}`}
        >
          <Icon name="chat" />
          {msg("agents.talk")}
        </a>
      )}
      {may(agent, "kind.delete") && (
        <Menu label={msg("agents.actions")}>
          <MenuItem danger onClick={onRemove}>
            {msg("agents.delete")}
          </MenuItem>
        </Menu>
      )}
    </>
  );
}

function Fields({ state, part, all, fresh }: { state: InputState; part: PartProps; all: Agent[]; fresh: boolean }) {
  const { input } = state;
  return (
    <>
      <section class="stack">
        {fresh && <Naming {...part} />}
        <Instructions {...part} />
      </section>
      <Skills value={input.ghost.spec as Selection} onChange={state.ghost.spec} />
      <ModelField state={state} />
      <AgentServers {...part} />
      <section class="stack">
        <h2>{msg("agents.members")}</h2>
        <MembersField state={state} all={all} />
      </section>
    </>
  );
}

function StaleNote({ stale, onSave }: { stale: Stale; onSave: () => void }) {
  return (
    <div class="note warn" role="alert">
      <p>{stale.message}</p>
      <div>
        <Button small onClick={onSave}>
          {msg("agents.saveAnyway")}
        </Button>
      </div>
    </div>
  );
}

interface BarProps {
  state: InputState;
  fresh: boolean;
  busy: boolean;
  onDiscard: () => void;
}

function Bar({ state, fresh, busy, onDiscard }: BarProps) {
  const confirm = useConfirm();
  if (!fresh && !state.dirty) return null;
  return (
    <div class="agents-bar" role="region" aria-label={msg("agents.unsaved")}>
      <span class="grow">{state.dirty ? msg("agents.unsaved") : ""}</span>
      {state.dirty && (
        <Button
          onClick={() =>
            confirm.ask({
              title: msg("agents.discardTitle"),
              children: msg("agents.discardText"),
              yes: msg("agents.discard"),
              danger: true,
              act: async () => {
                state.drop();
                onDiscard();
                focusHeading();
              },
            })
          }
        >
          {msg("agents.discard")}
        </Button>
      )}
      {confirm.open}
      <Button look="primary" type="submit" disabled={busy} aria-busy={busy}>
        {fresh ? msg("agents.create") : msg("agents.save")}
      </Button>
    </div>
  );
}
