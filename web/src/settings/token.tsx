import { useState } from "preact/hooks";
import { useSend } from "../account/send";
import { api, got, type Schema } from "../api/client";
import { Button, Check, Copy, Dialog, Problem, SelectField, TextField } from "../ui";
import { w } from "./words";

type Scope = Schema["TokenRequest"]["scopes"][number];

const all: Scope[] = ["read", "write", "run", "chat", "mcp", "review", "admin"];

/** Makes a token, and shows it the one time that it can be seen. */
export function MakeToken({ scopes: mine, onMade, onClose }: { scopes: string[]; onMade: () => void; onClose: () => void }) {
  const t = w();
  const [name, setName] = useState("");
  const [chosen, choose] = useState<Scope[]>([]);
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<Schema["NewToken"]>();
  const { send, busy, error } = useSend(async () => {
    setMade(await got(api.POST("/api/v1/tokens", { body: { name, scopes: chosen, days: Number(days) } })));
    onMade();
  });
  if (made) return <TheToken made={made} onClose={onClose} />;
  const turn = (scope: Scope, on: boolean) => choose(on ? all.filter((s) => s === scope || chosen.includes(s)) : chosen.filter((s) => s !== scope));
  return (
    <Dialog
      title={t.makeToken} onClose={onClose}
      actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="new-token" look="primary" disabled={chosen.length === 0} aria-busy={busy || undefined}>{t.makeToken}</Button></>}
    >
      <form id="new-token" class="stack" onSubmit={send}>
        <TextField label={t.tokenName} hint={t.tokenNameHint} value={name} onText={setName} required maxLength={100} autofocus />
        <fieldset class="settings-scopes">
          <legend>{t.scopes}</legend>
          <div class="row small">{t.presets} {presets(t).map(([text, scopes]) => <Button key={text} small onClick={() => choose(scopes)}>{text}</Button>)}</div>
          {all.filter((s) => mine.includes(s)).map((s) => <Check key={s} label={t.scopeText[s]} checked={chosen.includes(s)} onCheck={(on) => turn(s, on)} />)}
          {chosen.length === 0 && <p class="small muted">{t.scopeNeeded}</p>}
        </fieldset>
        <SelectField label={t.expires} hint={days === "0" ? t.foreverHint : undefined} value={days} onText={setDays} options={[...[7, 30, 90, 365].map((n): [string, string] => [String(n), t.days(n)]), ["0", t.forever]]} />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

const presets = (t: ReturnType<typeof w>): [string, Scope[]][] => [[t.presetMCP, ["run", "mcp"]], [t.presetUpload, ["read", "write"]], [t.presetRead, ["read"]]];

/** The token itself. */
function TheToken({ made, onClose }: { made: Schema["NewToken"]; onClose: () => void }) {
  const t = w();
  return (
    <Dialog title={made.name} onClose={onClose} actions={<Button look="primary" onClick={onClose}>{t.doneCopy}</Button>}>
      <p><strong>{t.tokenMade}</strong></p>
      <div class="settings-token"><code class="grow">{made.token}</code><Copy text={made.token} /></div>
      <p class="small muted">{t.tokenUse}</p>
      {made.scopes.includes("mcp") && <p class="small muted">{t.mcpAt} <code>{location.origin}/mcp</code></p>}
    </Dialog>
  );
}
