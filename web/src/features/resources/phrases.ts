import { msg } from "../../shared/i18n/messages";

/** newOfKind labels the button that creates a resource of a kind. */
export const newOfKind = (kind: string): string => msg("agents.newOne", { kind });

/** exposeOptions are the ways to show an agent's tools to MCP clients. */
export const exposeOptions = (): [string, string][] => [
  ["", msg("agents.exposes.default")],
  ["meta", msg("agents.exposes.meta")],
  ["direct", msg("agents.exposes.direct")],
];

/** vendorOptions are the APIs that a model may have. */
export const vendorOptions = (): [string, string][] => [
  ["openai", msg("agents.vendors.openai")],
  ["anthropic", msg("agents.vendors.anthropic")],
  ["demo", msg("agents.vendors.demo")],
];

/** addServers labels the button that adds pasted servers. */
export const addServers = (count: number): string =>
  count ? msg("agents.takeServers", { count }) : msg("agents.takeNone");

/** changedBy says who changed a resource during the user's edit. */
export const changedBy = (who: string, when: string): string =>
  when ? msg("agents.staleSaysWhen", { who, when }) : msg("agents.staleSays", { who });
