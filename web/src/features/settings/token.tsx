import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, Check, Copy, Dialog, Problem, SelectField, TextField } from "../../shared/ui";
import { useSend } from "../users/form";

type Scope = Schema["TokenRequest"]["scopes"][number];

const all: Scope[] = ["read", "write", "run", "chat", "mcp", "review", "admin"];

/** MakeToken creates a token and shows it once. */
export function MakeToken({
  scopes: mine,
  onMade,
  onClose,
}: {
  scopes: string[];
  onMade: () => void;
  onClose: () => void;
}) {
  const [name, setName] = useState("");
  const [chosen, choose] = useState<Scope[]>([]);
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<Schema["NewToken"]>();
  const { send, busy, error } = useSend(async () => {
    setMade(await got(api.POST("/api/v1/tokens", { body: { name, scopes: chosen, days: Number(days) } })));
    onMade();
  });
  if (made) return <TheToken made={made} onClose={onClose} />;
  const turn = (scope: Scope, on: boolean) =>
    choose(on ? all.filter((s) => s === scope || chosen.includes(s)) : chosen.filter((s) => s !== scope));
  return (
    <Dialog
      title={msg("settings.makeToken")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("settings.back")}</Button>
          <Button
            type="submit"
            form="new-token"
            look="primary"
            disabled={chosen.length === 0}
            aria-busy={busy || undefined}
          >
            {msg("settings.makeToken")}
          </Button>
        </>
      }
    >
      <form id="new-token" class="stack" onSubmit={send}>
        <TextField
          label={msg("settings.tokenName")}
          hint={msg("settings.tokenNameHint")}
          value={name}
          onText={setName}
          required
          maxLength={100}
          autofocus
        />
        <fieldset class="settings-scopes">
          <legend>{msg("settings.scopes")}</legend>
          <div class="row small">
            {msg("settings.presets")}{" "}
            {presets().map(([text, scopes]) => (
              <Button key={text} small onClick={() => choose(scopes)}>
                {text}
              </Button>
            ))}
          </div>
          {all
            .filter((s) => mine.includes(s))
            .map((s) => (
              <Check
                key={s}
                label={findMsg("settings.scopeText", s)}
                checked={chosen.includes(s)}
                onCheck={(on) => turn(s, on)}
              />
            ))}
          {chosen.length === 0 && <p class="small muted">{msg("settings.scopeNeeded")}</p>}
        </fieldset>
        <SelectField
          label={msg("settings.expires")}
          hint={days === "0" ? msg("settings.foreverHint") : undefined}
          value={days}
          onText={setDays}
          options={[
            ...[7, 30, 90, 365].map((n): [string, string] => [String(n), msg("settings.days", { count: n })]),
            ["0", msg("settings.forever")],
          ]}
        />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

const presets = (): [string, Scope[]][] => [
  [msg("settings.presetMCP"), ["run", "mcp"]],
  [msg("settings.presetUpload"), ["read", "write"]],
  [msg("settings.presetRead"), ["read"]],
];

/** TheToken shows the new token. */
function TheToken({ made, onClose }: { made: Schema["NewToken"]; onClose: () => void }) {
  return (
    <Dialog
      title={made.name}
      firm
      onClose={onClose}
      actions={
        <Button look="primary" onClick={onClose}>
          {msg("settings.doneCopy")}
        </Button>
      }
    >
      <p>
        <strong>{msg("settings.tokenMade")}</strong>
      </p>
      <div class="settings-token">
        <code class="grow">{made.token}</code>
        <Copy text={made.token} />
      </div>
      <p class="small muted">{msg("settings.tokenUse")}</p>
      {made.scopes.includes("mcp") && (
        <p class="small muted">
          {msg("settings.mcpAt")} <code>{location.origin}/mcp</code>
        </p>
      )}
    </Dialog>
  );
}
