import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { AreaField, Button, Dialog, Problem } from "../ui";
import { rememberTrial } from "./back";
import type { Said } from "./check";
import { keep } from "./kept";
import { w } from "./words";
import { asDraft, type Work } from "./work";

/** Begins a conversation with the draft, and goes there; says before what of it cannot run. */
export function TryDialog({ work, said, onClose }: { work: Work; said: Said<Schema["Checked"]>; onClose: () => void }) {
  const { route } = useLocation();
  const name = said.data?.name || work.name;
  const first = work.requests.split("\n").map((l) => l.trim()).find(Boolean);
  const [message, setMessage] = useState(first ?? w().trySay(name));
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const body: Schema["NewSession"] = { title: w().trySession(name), message: message.trim() || undefined, draft: asDraft(work, work.files) };
      const session = await got(api.POST("/api/v1/sessions", { body }));
      keep({ key: work.key, of: work.of?.id, base: work.base, name, at: new Date().toISOString(), files: work.files, namespace: work.namespace, touched: work.changed });
      rememberTrial(session.id, location.pathname + location.search);
      route(`/chat/${encodeURIComponent(session.id)}`);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog title={w().tryTitle} onClose={onClose} actions={<Button look="primary" icon="play" onClick={() => void press()} aria-busy={busy} disabled={busy} autofocus>{w().tryBegin}</Button>}>
      {!!error && <Problem error={error} />}
      <p>{w().tryText}</p>
      <Limits checked={said.data} />
      <AreaField label={w().say} hint={w().sayHint} rows={3} value={message} onText={setMessage} />
    </Dialog>
  );
}

/** What of the draft cannot be tried yet. */
function Limits({ checked: c }: { checked?: Schema["Checked"] }) {
  if (!c) return null;
  const scripts = c.files.filter((f) => f.script).map((f) => f.path);
  if (!c.code || c.runnable) return <p class="small muted">{w().wontNone}</p>;
  const parts: [string, string[]][] = [[w().wontRunFiles, scripts], [w().wontTools, c.asks.tools], [w().wontServers, c.asks.mcpServers]];
  return (
    <div class="note warn">
      <span>{w().willWork}</span>
      <span>{w().wontWork}</span>
      <ul>{parts.filter(([, items]) => items.length).map(([what, items]) => <li key={what}>{what}: <span class="mono">{items.join(", ")}</span></li>)}</ul>
    </div>
  );
}
