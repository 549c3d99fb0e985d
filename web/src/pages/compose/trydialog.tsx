import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { rememberTrial } from "../../features/skills/backtodraft";
import { api, got, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, Dialog, Problem } from "../../shared/ui";
import { storeDraft } from "./drafts";
import { asDraft, type Work } from "./draftstate";
import type { CheckResult } from "./validation";

/** TryDialog starts a conversation with a draft. It first says which parts cannot run. */
export function TryDialog({
  work,
  result,
  onClose,
}: {
  work: Work;
  result: CheckResult<Schema["Checked"]>;
  onClose: () => void;
}) {
  const { route } = useLocation();
  const name = result.data?.name || work.name;
  const first = work.requests
    .split("\n")
    .map((l) => l.trim())
    .find(Boolean);
  const [message, setMessage] = useState(first ?? msg("compose.trySay", { name }));
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const body: Schema["NewSession"] = {
        title: msg("compose.trySession", { name }),
        message: message.trim() || undefined,
        draft: asDraft(work, work.files),
      };
      const session = await got(api.POST("/api/v1/sessions", { body }));
      if (work.changed)
        storeDraft({
          key: work.key,
          of: work.of?.id,
          base: work.base,
          name,
          at: new Date().toISOString(),
          files: work.files,
          namespace: work.namespace,
          touched: true,
        });
      rememberTrial(session.id, location.pathname + location.search);
      route(`/chat/${encodeURIComponent(session.id)}`);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={msg("compose.tryTitle")}
      onClose={onClose}
      actions={
        <Button look="primary" icon="play" onClick={() => void press()} aria-busy={busy} disabled={busy} autofocus>
          {msg("compose.tryBegin")}
        </Button>
      }
    >
      {!!error && <Problem error={error} />}
      <p>{msg("compose.tryText")}</p>
      <Limits checked={result.data} />
      <AreaField
        label={msg("compose.say")}
        hint={msg("compose.sayHint")}
        rows={3}
        value={message}
        onText={setMessage}
      />
    </Dialog>
  );
}

/** Limits lists the parts of a draft that cannot be tried yet. */
function Limits({ checked: c }: { checked?: Schema["Checked"] }) {
  if (!c) return null;
  const scripts = c.files.filter((f) => f.script).map((f) => f.path);
  if (!c.code || c.runnable) return <p class="small muted">{msg("compose.wontNone")}</p>;
  const parts: [string, string[]][] = [
    [msg("compose.wontRunFiles"), scripts],
    [msg("compose.wontTools"), c.asks.tools],
    [msg("compose.wontServers"), c.asks.mcpServers],
  ];
  return (
    <div class="note warn">
      <span>{msg("compose.willWork")}</span>
      <span>{msg("compose.wontWork")}</span>
      <ul>
        {parts
          .filter(([, items]) => items.length)
          .map(([what, items]) => (
            <li key={what}>
              {what}: <span class="mono">{items.join(", ")}</span>
            </li>
          ))}
      </ul>
    </div>
  );
}
