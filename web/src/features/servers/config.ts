/** The configuration of an MCP server. The form knows some keys and keeps all others. */
export type Config = Record<string, unknown>;

/** An entry of mcpServers: an inline server, or the name of one that is defined elsewhere. */
export interface Entry {
  name: string;
  config?: Config;
}

const isMap = (v: unknown): v is Config => typeof v === "object" && v !== null && !Array.isArray(v);
const canon = (key: string) => key.replace(/[_\- ]/g, "").toLowerCase();
const wrappers = ["mcpservers", "servers", "connections"];

/** The keys of the form, with their alternative spellings. */
const spellings: Record<string, string[]> = {
  type: ["type", "transport", "transporttype"],
  command: ["command", "cmd"],
  args: ["args", "arguments"],
  env: ["env", "environment"],
  url: ["url", "httpurl", "serverurl"],
  headers: ["headers", "httpheaders", "requestheaders"],
  includeTools: ["includetools", "allowedtools", "enabledtools", "include"],
  excludeTools: ["excludetools", "excludedtools", "disabledtools", "exclude"],
  ask: ["ask"],
  pin: ["pin"],
  disabled: ["disabled"],
  safety: ["safety", "safetylevel"],
  timeout: ["timeout"],
};

/**
 * readServers reads mcpServers in any of its shapes. It returns undefined for a shape that the form
 * cannot show.
 */
export function readServers(value: unknown): Entry[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string")
    return value
      .split(",")
      .map((s) => s.trim())
      .filter(Boolean)
      .map((name) => ({ name }));
  if (Array.isArray(value)) {
    const entries = value.map((v): Entry | undefined => {
      if (typeof v === "string") return { name: v };
      if (!isMap(v) || typeof v.name !== "string") return undefined;
      const { name, ...config } = v;
      return { name: name as string, config };
    });
    return entries.every((e) => e !== undefined) ? (entries as Entry[]) : undefined;
  }
  if (!isMap(value)) return undefined;
  const keys = Object.keys(value);
  if (keys.length === 1 && wrappers.includes(canon(keys[0]!)) && !isServer(value[keys[0]!]))
    return readServers(value[keys[0]!]);
  return keys.every((k) => isMap(value[k])) ? keys.map((name) => ({ name, config: value[name] as Config })) : undefined;
}

function isServer(v: unknown): boolean {
  return isMap(v) && Object.keys(v).some((k) => [...spellings.command!, ...spellings.url!, "urls"].includes(canon(k)));
}

/** writeServers writes entries as a map, a list of names, or a list of both. */
export function writeServers(entries: Entry[]): unknown {
  if (entries.length === 0) return undefined;
  if (entries.every((e) => e.config)) return Object.fromEntries(entries.map((e) => [e.name, e.config]));
  return entries.map((e) => (e.config ? { name: e.name, ...e.config } : e.name));
}

/** value returns the value of a key in any spelling. */
export function value(config: Config, key: string): unknown {
  const found = Object.keys(config).find((k) => (spellings[key] ?? [canon(key)]).includes(canon(k)));
  return found === undefined ? undefined : config[found];
}

/**
 * withValue returns the configuration with a new value at the same position. The value undefined
 * removes the key.
 */
export function withValue(config: Config, key: string, to: unknown): Config {
  const same = (k: string) => (spellings[key] ?? [canon(key)]).includes(canon(k));
  const out: Config = {};
  let put = false;
  for (const [k, v] of Object.entries(config)) {
    if (!same(k)) out[k] = v;
    else if (!put && to !== undefined) {
      out[key] = to;
      put = true;
    }
  }
  if (!put && to !== undefined) out[key] = to;
  return out;
}

export const text = (v: unknown): string =>
  typeof v === "string" ? v : typeof v === "number" || typeof v === "boolean" ? String(v) : "";

/** texts reads a list of strings, or a single string. */
export function texts(v: unknown): string[] {
  if (Array.isArray(v)) return v.map(text);
  return text(v) ? [text(v)] : [];
}

/** pairs reads a map of strings. */
export function pairs(v: unknown): Record<string, string> {
  return isMap(v) ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, text(x)])) : {};
}

/** isCommand reports whether the server is started by a command, not reached at an address. */
export function isCommand(config: Config): boolean {
  const type = canon(text(value(config, "type")));
  if (type === "stdio" || type === "local") return true;
  return (
    value(config, "command") !== undefined ||
    (type === "" && urls(config).length === 0 && value(config, "url") === undefined)
  );
}

/** urls returns the addresses of a server. */
export function urls(config: Config): string[] {
  return [...texts(value(config, "url")), ...texts(value(config, "urls"))];
}

/** target returns the command or the hosts of a server. */
export function target(config: Config): string {
  if (isCommand(config)) return [...texts(value(config, "command")), ...texts(value(config, "args"))].join(" ");
  return urls(config).join(", ");
}

/** A variable and the part of the server that gets it. */
interface Use {
  kind: "secret" | "user";
  name: string;
  where: string;
}

const variable = /\$\{\{\s*(secrets|user)\.([A-Za-z0-9_.-]+)\s*\}\}/g;

/** uses returns the variables of a draft configuration. */
export function uses(config: Config): Use[] {
  const found: Use[] = [];
  const look = (where: string, v: unknown) => {
    for (const [, of, name] of text(v).matchAll(variable)) {
      const use: Use = { kind: of === "user" ? "user" : "secret", name: name!, where };
      if (!found.some((f) => f.kind === use.kind && f.name === use.name && f.where === use.where)) found.push(use);
    }
  };
  for (const [name, v] of Object.entries(pairs(value(config, "env")))) look(`env ${name}`, v);
  for (const [name, v] of Object.entries(pairs(value(config, "headers")))) look(`header ${name}`, v);
  for (const v of urls(config)) look("url", v);
  for (const v of texts(value(config, "args"))) look("args", v);
  return found;
}

export const secretReference = (name: string) => `\${{secrets.${name}}}`;
