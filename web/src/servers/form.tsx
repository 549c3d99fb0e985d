import { AreaField, Check, SelectField, TextField } from "../ui";
import { isCommand, pairs, text, texts, urls, value, withValue, type Config } from "./config";
import { Pairs } from "./pairs";
import { w } from "./words";

interface FormProps {
  config: Config;
  onChange: (config: Config) => void;
  secrets: string[];
  /** What is wrong with this server, as the hub said. */
  error?: string;
}

const lines = (v: string) => v.split("\n").map((l) => l.trim()).filter(Boolean);

/** The fields of one MCP server. What it has besides is kept, and shown in the JSON. */
export function ServerForm({ config, onChange, secrets, error }: FormProps) {
  const t = w();
  const set = (key: string, to: unknown) => onChange(withValue(config, key, to));
  const command = isCommand(config);
  return (
    <div class="stack">
      <SelectField label={t.transportLabel} value={command ? "stdio" : transport(config)} options={t.transports} hint={command ? t.commandHint : t.addressHint} onText={(to) => onChange(become(config, to))} />
      {command ? <CommandFields config={config} set={set} /> : <AddressFields config={config} onChange={onChange} />}
      {command
        ? <Pairs label={t.envField} names={[t.variable, t.value]} value={pairs(value(config, "env"))} onChange={(to) => set("env", to)} secrets={secrets} hint={t.secretHint} error={error} />
        : <Pairs label={t.headers} names={[t.header, t.value]} value={pairs(value(config, "headers"))} onChange={(to) => set("headers", to)} secrets={secrets} hint={t.secretHint} error={error} />}
      <Limits config={config} set={set} />
    </div>
  );
}

function CommandFields({ config, set }: { config: Config; set: (key: string, to: unknown) => void }) {
  const t = w();
  const written = value(config, "command");
  const args = texts(value(config, "args"));
  return (
    <>
      <TextField label={t.commandField} value={texts(written).join(" ")} class="input mono" placeholder="npx" autocomplete="off" onText={(to) => set("command", to)} />
      {args.some((a) => a.includes("\n")) ? <p class="note small">{t.argsInJSON}</p> : <AreaField label={t.argsField} hint={t.argsHint} class="mono" rows={Math.max(2, Math.min(8, args.length + 1))} value={args.join("\n")} onText={(to) => set("args", to ? to.split("\n") : undefined)} />}
    </>
  );
}

function AddressFields({ config, onChange }: { config: Config; onChange: (config: Config) => void }) {
  const t = w();
  const put = (list: string) => {
    const all = lines(list);
    const plain = withValue(withValue(config, "urls", undefined), "url", undefined);
    onChange(all.length > 1 ? withValue(plain, "urls", all) : withValue(plain, "url", all[0] ?? ""));
  };
  const have = urls(config);
  if (have.length > 1) return <AreaField label={t.urls} hint={t.urlsHint} class="mono" value={have.join("\n")} onText={put} />;
  return <TextField label={t.url} type="url" class="input mono" placeholder="https://mcp.example.com/mcp" autocomplete="off" value={have[0] ?? ""} onText={put} />;
}

/** What of a server is let through, and what is asked about. */
function Limits({ config, set }: { config: Config; set: (key: string, to: unknown) => void }) {
  const t = w();
  const list = (key: string) => texts(value(config, key)).join(", ");
  const split = (to: string) => (to.trim() ? to.split(",").map((s) => s.trim()) : undefined);
  const on = (v: unknown) => v === true || v === "true";
  return (
    <details class="servers-more">
      <summary>{t.limits}</summary>
      <div class="stack">
        <TextField label={t.include} hint={t.includeHint} class="input mono" placeholder="search_*" value={list("includeTools")} onText={(to) => set("includeTools", split(to))} />
        <TextField label={t.exclude} class="input mono" placeholder="delete_*" value={list("excludeTools")} onText={(to) => set("excludeTools", split(to))} />
        <SelectField label={t.safety} hint={t.safetyHint} value={text(value(config, "safety")).toUpperCase()} options={t.safeties} onText={(to) => set("safety", to || undefined)} />
        <Check label={t.ask} hint={t.askHint} checked={on(value(config, "ask"))} onCheck={(to) => set("ask", to || undefined)} />
        <Check label={t.disabled} hint={t.disabledHint} checked={on(value(config, "disabled"))} onCheck={(to) => set("disabled", to || undefined)} />
      </div>
    </details>
  );
}

function transport(config: Config): string {
  const type = text(value(config, "type")).toLowerCase();
  if (type === "sse" || type === "websocket" || type === "ws") return type === "ws" ? "websocket" : type;
  return "http";
}

/** The configuration with another transport; what belongs to the old one goes. */
function become(config: Config, to: string): Config {
  const gone = to === "stdio" ? ["type", "url", "urls", "headers"] : ["command", "args", "env"];
  const left = gone.reduce((c, key) => withValue(c, key, undefined), config);
  if (to === "stdio") return isCommand(config) ? config : { command: "", ...left };
  const rest = withValue(left, "type", to === "http" ? undefined : to);
  return urls(rest).length ? rest : { url: "", ...rest };
}
