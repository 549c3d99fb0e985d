import { useEffect, useState } from "preact/hooks";
import { useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, Tag, TextField } from "../../shared/ui";
import { Promises } from "../servers/annotations";
import { isCommand, readServers, target, writeServers, type Config, type Entry } from "../servers/config";
import { FormOrJSON } from "../servers/formorjson";
import { Missing } from "../servers/missingvalues";
import { allServers, serversOf } from "../servers/serverlists";
import { href, StandingTag, trialOf, type Server } from "../servers/state";
import { TrialButton, TrialResult, useTrial } from "../servers/trial";
import { type Selection } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { GlobalServers } from "./globalservers";
import { Paste } from "./paste";
import { useSecrets } from "./secrets";
import "../servers/servers.css";

/** AgentServers edits the MCP servers of an agent: its own servers and the shared ones it uses. */
export function AgentServers({ draft, place, base, profile }: PartProps) {
  const spec = draft.doc.spec as Selection;
  const entries = readServers(spec.mcpServers);
  const secrets = useSecrets(draft.doc.metadata.namespace).map((s) => s.name);
  const fault = useFault("spec.mcpServers");
  const [pasting, paste] = useState(false);
  const [fresh, setFresh] = useState<string>(); // the server that was added last is open
  const kept = useLoad(
    async (signal) => (place ? serversOf(place.kind, place.namespace, place.name, signal) : []),
    [place?.name, JSON.stringify((base.spec as Selection).mcpServers)],
  );
  const all = useLoad(allServers, []);
  if (!entries) return <p class="note warn">{msg("agents.otherShape")}</p>;
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
        <div class="agents-wide">
          <h2>{msg("agents.ownServers")}</h2>
          <p class="small muted">{msg("agents.ownServersHint")}</p>
        </div>
        <Button small onClick={() => paste(true)}>
          {msg("agents.paste")}
        </Button>
        <Button small icon="plus" onClick={add}>
          {msg("agents.addServer")}
        </Button>
      </div>
      {fault && (
        <p class="agents-fault" role="alert">
          {fault}
        </p>
      )}
      {own.map((e) => {
        const unchanged = before.some(
          (b) => b.name === e.name && JSON.stringify(b.config) === JSON.stringify(e.config),
        );
        const server = unchanged ? kept.data?.find((s) => s.name === e.name) : undefined;
        const known = server && profile?.servers.find((s) => s.name === e.name && s.digest === server.digest);
        return (
          <OwnServer
            key={before.findIndex((b) => b.name === e.name) < 0 ? "new" + own.indexOf(e) : e.name}
            entry={e}
            taken={entries.map((x) => x.name)}
            server={
              server && known?.missing?.length ? { ...server, state: known.state, missing: known.missing } : server
            }
            secrets={secrets}
            open={e.name === fresh}
            onChange={(to) => {
              if (e.name === fresh) setFresh(to.name);
              set(e.name, to);
            }}
            onRemove={() => put(entries.filter((x) => x !== e))}
          />
        );
      })}
      {!own.length && <p class="muted small">{msg("agents.noOwnServers")}</p>}
      <GlobalServers
        all={all.data ?? []}
        names={entries.filter((e) => !e.config).map((e) => e.name)}
        onChange={(names) => put([...names.map((name) => ({ name })), ...own])}
      />
      {pasting && (
        <Paste
          taken={entries.map((e) => e.name)}
          onClose={() => paste(false)}
          onAdd={(more) => put([...entries.filter((e) => !more.some((m) => m.name === e.name)), ...more])}
        />
      )}
    </section>
  );
}

interface OwnProps {
  entry: Entry & { config: Config };
  taken: string[];
  /** The server as the hub knows it, if its configuration is unchanged. */
  server?: Server;
  secrets: string[];
  open: boolean;
  onChange: (entry: Entry) => void;
  onRemove: () => void;
}

/** OwnServer shows a server of an agent in one line, and its form when opened. */
function OwnServer({ entry, taken, server, secrets, open, onChange, onRemove }: OwnProps) {
  const [shown, show] = useState(open);
  const fault = useFault(`spec.mcpServers.${entry.name}`, true);
  const trial = useTrial(server ? trialOf(server) : { name: entry.name, config: entry.config });
  useEffect(() => {
    if (fault) show(true);
  }, [fault]);
  const rename = (name: string) => {
    if (name && !taken.includes(name)) onChange({ ...entry, name });
  };
  return (
    <div class="card agents-server">
      <div class="row">
        <button type="button" class="agents-fold" aria-expanded={shown} onClick={() => show(!shown)}>
          <span aria-hidden="true">{shown ? "▾" : "▸"}</span> <strong>{entry.name}</strong>
        </button>
        {server ? <StandingTag server={server} /> : <Tag look="accent">{msg("agents.notSaved")}</Tag>}
        <span class="row push">
          {server && (
            <a class="button small quiet" href={href(server)}>
              {msg("agents.openServer")}
            </a>
          )}
          <TrialButton trial={trial} small />
          <Button
            small
            look="quiet"
            icon="trash"
            label={msg("agents.removeServer", { name: entry.name })}
            onClick={onRemove}
          />
        </span>
      </div>
      <p class="small muted mono truncate" title={target(entry.config)}>
        {target(entry.config) || msg("agents.noTarget")}
      </p>
      <Promises config={entry.config} saved={!!server} />
      {server && <Missing server={server} elsewhere />}
      <TrialResult
        trial={trial}
        note={server ? undefined : isCommand(entry.config) ? msg("agents.draftCommand") : msg("agents.draftTest")}
      />
      {shown && (
        <div class="stack">
          <TextField label={msg("agents.serverName")} value={entry.name} onText={rename} />
          <FormOrJSON
            name={entry.name}
            config={entry.config}
            onChange={(config) => onChange({ ...entry, config })}
            secrets={secrets}
            error={fault}
          />
        </div>
      )}
      {!shown && fault && (
        <p class="agents-fault" role="alert">
          {fault}
        </p>
      )}
    </div>
  );
}
