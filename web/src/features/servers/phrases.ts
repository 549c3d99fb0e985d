import { msg } from "../../shared/i18n/messages";

/** milliseconds formats a duration. */
export const milliseconds = (n: number): string =>
  msg("servers.ms", { n: n < 10 ? n.toFixed(1) : String(Math.round(n)) });

/** restarted says how many connections a restart closed. */
export const restarted = (count: number): string =>
  count ? msg("servers.restarted", { count }) : msg("servers.notConnected");

/** acceptTools labels the button that accepts changed tools. */
export const acceptTools = (count: number): string => msg("servers.accept", { count });

/** transportOptions are the ways to reach a server. */
export const transportOptions = (): [string, string][] => [
  ["http", msg("servers.transports.http")],
  ["sse", msg("servers.transports.sse")],
  ["websocket", msg("servers.transports.websocket")],
  ["stdio", msg("servers.transports.stdio")],
];

/** addPair labels the button that adds a row, such as a header. */
export const addPair = (name: string): string => msg("servers.addPair", { name: name.toLowerCase() });

/** safetyOptions are the risk levels of a tool. */
export const safetyOptions = (): [string, string][] => [
  ["", msg("servers.noSafety")],
  ...["SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"].map((level): [string, string] => [level, level]),
];
