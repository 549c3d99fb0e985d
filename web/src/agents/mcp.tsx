import { useEffect, useState } from "preact/hooks";
import { useAsked } from "../api/client";
import { allServers, serversOf } from "../servers/all";
import { FormOrJSON } from "../servers/both";
import { isCommand, readServers, target, writeServers, type Config, type Entry } from "../servers/config";
import { Missing } from "../servers/missing";
import { Promises } from "../servers/promises";
import { href, StandingTag, trialOf, type Server } from "../servers/state";
import { TrialButton, TrialResult, useTrial } from "../servers/trial";
import { Button, Tag, TextField } from "../ui";
import { GlobalServers } from "./globals";
import { Paste } from "./paste";
import { type Selection } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { useSecrets } from "./secrets";
import { w } from "./words";
import "../servers/servers.css";

/** The MCP servers of a Ghost or Bot: those of its own, and which of everybody's. */
export function AgentServers({ draft, place, base, profile }: PartProps) {
  const t = w();
  const spec = draft.doc.spec as Selection;
  const entries = readServers(spec.mcpServers);
  const secrets = useSecrets(draft.doc.metadata.namespace).map((s) => s.name);
  const fault = useFault("spec.mcpServers");
  const [pasting, paste] = useState(false);
  const [fresh, setFresh] = useState<string>(); // which was added last, and is open
  const kept = useAsked(async (signal) => (place ? serversOf(place.kind, place.namespace, place.name, signal) : []), [place?.name, JSON.stringify((base.spec as Selection).mcpServers)]);
  const all = useAsked(allServers, []);
  if (!entries) return <p class="note warn">{t.otherShape}</p>;
  const put = (next: Entry[]) => draft.spec({ mcpServers: writeServers(next) });
  const set = (name: string, to: Entry) => put(entries.map((e) => (e.name === name && e.config ? to : e)));
  const own = entries.filter((e): e is Entry & { config: Config } => !!e.config);
  const before = readServers((base.spec as Selection).mcpServers) ?? [];
  const add = () => {
    let name = "server";
    for (let n = 2; entries.some((e) => e.name === name); n++) name = `server-${n}`;
    setFresh(name);
    put([...entries, { name, config: { url: "" } }]);
  };
  return (
    <section class="stack">
      <div class="row">
        <div class="agents-wide"><h2>{t.ownServers}</h2><p class="small muted">{t.ownServersHint}</p></div>
        <Button small onClick={() => paste(true)}>{t.paste}</Button>
        <Button small icon="plus" onClick={add}>{t.addServer}</Button>
      </div>
      {fault && <p class="agents-fault" role="alert">{fault}</p>}
      {own.map((e) => {
        const unchanged = before.some((b) => b.name === e.name && JSON.stringify(b.config) === JSON.stringify(e.config));
        const server = unchanged ? kept.data?.find((s) => s.name === e.name) : undefined;
        const known = server && profile?.servers.find((s) => s.name === e.name && s.digest === server.digest);
        return <OwnServer key={before.findIndex((b) => b.name === e.name) < 0 ? "new" + own.indexOf(e) : e.name} entry={e} taken={entries.map((x) => x.name)} server={server && known?.missing?.length ? { ...server, state: known.state, missing: known.missing } : server} secrets={secrets} open={e.name === fresh}
          onChange={(to) => { if (e.name === fresh) setFresh(to.name); set(e.name, to); }} onRemove={() => put(entries.filter((x) => x !== e))} />;
      })}
      {!own.length && <p class="muted small">{t.noOwnServers}</p>}
      <GlobalServers all={all.data ?? []} names={entries.filter((e) => !e.config).map((e) => e.name)} onChange={(names) => put([...names.map((name) => ({ name })), ...own])} />
      {pasting && <Paste taken={entries.map((e) => e.name)} onClose={() => paste(false)} onAdd={(more) => put([...entries.filter((e) => !more.some((m) => m.name === e.name)), ...more])} />}
    </section>
  );
}

interface OwnProps {
  entry: Entry & { config: Config };
  taken: string[];
  /** As the hub has it, where nothing of it is changed. */
  server?: Server;
  secrets: string[];
  open: boolean;
  onChange: (entry: Entry) => void;
  onRemove: () => void;
}

/** One server of an agent: what it is in a line, and all of it when opened. */
function OwnServer({ entry, taken, server, secrets, open, onChange, onRemove }: OwnProps) {
  const t = w();
  const [shown, show] = useState(open);
  const fault = useFault(`spec.mcpServers.${entry.name}`, true);
  const trial = useTrial(server ? trialOf(server) : { name: entry.name, config: entry.config });
  useEffect(() => { if (fault) show(true); }, [fault]);
  const rename = (name: string) => { if (name && !taken.includes(name)) onChange({ ...entry, name }); };
  return (
    <div class="card agents-server">
      <div class="row">
        <button type="button" class="agents-fold" aria-expanded={shown} onClick={() => show(!shown)}><span aria-hidden="true">{shown ? "▾" : "▸"}</span> <strong>{entry.name}</strong></button>
        {server ? <StandingTag server={server} /> : <Tag look="accent">{t.notSaved}</Tag>}
        <span class="row push">
          {server && <a class="button small quiet" href={href(server)}>{t.openServer}</a>}
          <TrialButton trial={trial} small />
          <Button small look="quiet" icon="trash" label={t.removeServer(entry.name)} onClick={onRemove} />
        </span>
      </div>
      <p class="small muted mono truncate" title={target(entry.config)}>{target(entry.config) || t.noTarget}</p>
      <Promises config={entry.config} saved={!!server} />
      {server && <Missing server={server} elsewhere />}
      <TrialResult trial={trial} note={server ? undefined : isCommand(entry.config) ? t.draftCommand : t.draftTest} />
      {shown && (
        <div class="stack">
          <TextField label={t.serverName} value={entry.name} onText={rename} />
          <FormOrJSON name={entry.name} config={entry.config} onChange={(config) => onChange({ ...entry, config })} secrets={secrets} error={fault} />
        </div>
      )}
      {!shown && fault && <p class="agents-fault" role="alert">{fault}</p>}
    </div>
  );
}
