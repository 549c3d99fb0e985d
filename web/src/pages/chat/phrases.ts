import { msg } from "../../shared/i18n/messages";
import type { Turn } from "./transcript";

/** duration formats a number of seconds. */
export const duration = (s: number): string =>
  s < 0.1 ? msg("chat.underSecond") : msg("chat.seconds", { s: s.toFixed(s < 10 ? 1 : 0) });

/** unloaded names a skill that left the context, with the reason if there is one. */
export const unloaded = (name: string, why: string): string =>
  why ? msg("chat.unloadedWhy", { name, why }) : msg("chat.unloaded", { name });

/** matchesText says how many skills a search found. */
export const matchesText = (count: number): string => (count ? msg("chat.matches", { count }) : msg("chat.noMatch"));

/** unloadsText says when an unused skill is unloaded. */
export const unloadsText = (count: number): string => (count ? msg("chat.left", { count }) : msg("chat.leftNow"));

/** messageTitle names a message by its text, its skill or its images. */
export const messageTitle = (message: Pick<Turn, "text" | "skill" | "images">): string =>
  message.text ||
  (message.skill ? msg("chat.usedSkill", { name: message.skill }) : message.images.map((i) => i.name).join(", "));
