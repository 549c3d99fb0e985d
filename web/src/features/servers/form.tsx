import { msg } from "../../shared/i18n/messages";
import { AreaField, Check, SelectField, TextField } from "../../shared/ui";
import { isCommand, pairs, text, texts, urls, value, withValue, type Config } from "./config";
import { Pairs } from "./pairs";
import { safetyOptions, transportOptions } from "./phrases";

interface FormProps {
  config: Config;
  onChange: (config: Config) => void;
  secrets: string[];
  /** The hub's error for this server. */
  error?: string;
}

const lines = (v: string) =>
  v
    .split("\n")
    .map((l) => l.trim())
    .filter(Boolean);

/** ServerForm edits the known fields of a server. Other fields are kept and appear in the JSON. */
export function ServerForm({ config, onChange, secrets, error }: FormProps) {
  const set = (key: string, to: unknown) => onChange(withValue(config, key, to));
  const command = isCommand(config);
  return (
    <div class="stack">
      <SelectField
        label={msg("servers.transportLabel")}
        value={command ? "stdio" : transport(config)}
        options={transportOptions()}
        hint={command ? msg("servers.commandHint") : msg("servers.addressHint")}
        onText={(to) => onChange(become(config, to))}
      />
      {command ? <CommandFields config={config} set={set} /> : <AddressFields config={config} onChange={onChange} />}
      {command ? (
        <Pairs
          label={msg("servers.envField")}
          names={[msg("servers.variable"), msg("servers.value")]}
          value={pairs(value(config, "env"))}
          onChange={(to) => set("env", to)}
          secrets={secrets}
          hint={msg("servers.secretHint")}
          error={error}
        />
      ) : (
        <Pairs
          label={msg("servers.headers")}
          names={[msg("servers.header"), msg("servers.value")]}
          value={pairs(value(config, "headers"))}
          onChange={(to) => set("headers", to)}
          secrets={secrets}
          hint={msg("servers.secretHint")}
          error={error}
        />
      )}
      <Limits config={config} set={set} />
    </div>
  );
}

function CommandFields({ config, set }: { config: Config; set: (key: string, to: unknown) => void }) {
  const written = value(config, "command");
  const args = texts(value(config, "args"));
  return (
    <>
      <TextField
        label={msg("servers.commandField")}
        value={texts(written).join(" ")}
        class="input mono"
        placeholder="npx"
        autocomplete="off"
        onText={(to) => set("command", to)}
      />
      {args.some((a) => a.includes("\n")) ? (
        <p class="note small">{msg("servers.argsInJSON")}</p>
      ) : (
        <AreaField
          label={msg("servers.argsField")}
          hint={msg("servers.argsHint")}
          class="mono"
          rows={Math.max(2, Math.min(8, args.length + 1))}
          value={args.join("\n")}
          onText={(to) => set("args", to ? to.split("\n") : undefined)}
        />
      )}
    </>
  );
}

function AddressFields({ config, onChange }: { config: Config; onChange: (config: Config) => void }) {
  const put = (list: string) => {
    const all = lines(list);
    const plain = withValue(withValue(config, "urls", undefined), "url", undefined);
    onChange(all.length > 1 ? withValue(plain, "urls", all) : withValue(plain, "url", all[0] ?? ""));
  };
  const have = urls(config);
  if (have.length > 1)
    return (
      <AreaField
        label={msg("servers.urls")}
        hint={msg("servers.urlsHint")}
        class="mono"
        value={have.join("\n")}
        onText={put}
      />
    );
  return (
    <TextField
      label={msg("servers.url")}
      type="url"
      class="input mono"
      placeholder="https://mcp.example.com/mcp"
      autocomplete="off"
      value={have[0] ?? ""}
      onText={put}
    />
  );
}

/** Limits edits the tools and the approval of a server. */
function Limits({ config, set }: { config: Config; set: (key: string, to: unknown) => void }) {
  const list = (key: string) => texts(value(config, key)).join(", ");
  const split = (to: string) => (to.trim() ? to.split(",").map((s) => s.trim()) : undefined);
  const on = (v: unknown) => v === true || v === "true";
  return (
    <details class="servers-more">
      <summary>{msg("servers.limits")}</summary>
      <div class="stack">
        <TextField
          label={msg("servers.include")}
          hint={msg("servers.includeHint")}
          class="input mono"
          placeholder="search_*"
          value={list("includeTools")}
          onText={(to) => set("includeTools", split(to))}
        />
        <TextField
          label={msg("servers.exclude")}
          class="input mono"
          placeholder="delete_*"
          value={list("excludeTools")}
          onText={(to) => set("excludeTools", split(to))}
        />
        <SelectField
          label={msg("servers.safety")}
          hint={msg("servers.safetyHint")}
          value={text(value(config, "safety")).toUpperCase()}
          options={safetyOptions()}
          onText={(to) => set("safety", to || undefined)}
        />
        <Check
          label={msg("servers.ask")}
          hint={msg("servers.askHint")}
          checked={on(value(config, "ask"))}
          onCheck={(to) => set("ask", to || undefined)}
        />
        <Check
          label={msg("servers.disabled")}
          hint={msg("servers.disabledHint")}
          checked={on(value(config, "disabled"))}
          onCheck={(to) => set("disabled", to || undefined)}
        />
      </div>
    </details>
  );
}

function transport(config: Config): string {
  const type = text(value(config, "type")).toLowerCase();
  if (type === "sse" || type === "websocket" || type === "ws") return type === "ws" ? "websocket" : type;
  return "http";
}

/** become changes the transport and removes the fields of the old one. */
function become(config: Config, to: string): Config {
  const gone = to === "stdio" ? ["type", "url", "urls", "headers"] : ["command", "args", "env"];
  const left = gone.reduce((c, key) => withValue(c, key, undefined), config);
  if (to === "stdio") return isCommand(config) ? config : { command: "", ...left };
  const rest = withValue(left, "type", to === "http" ? undefined : to);
  return urls(rest).length ? rest : { url: "", ...rest };
}
