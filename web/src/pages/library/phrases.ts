import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import type { Sort } from "./filter";

/** sortName names a sort order. Users without groups are their own team. */
export const sortName = (sort: Sort): string =>
  sort === "team" && !me.value?.groups.length ? msg("library.sorts.own") : msg(`library.sorts.${sort}`);

/** ratingText says the mean of the ratings of a skill. */
export const ratingText = (mean: number, count: number): string =>
  msg("library.rated", { mean: mean.toFixed(1), count });

/** usageText says how often a skill was used in the last 30 days. */
export const usageText = (count: number): string => (count ? msg("library.used", { count }) : msg("library.unused"));

/** versionName names a version by its number, and by its label if that says more. */
export const versionName = (n: number, label?: string): string =>
  label && label !== String(n)
    ? msg("skill.versionLabel", { n: String(n), label })
    : msg("skill.version", { n: String(n) });

/** packageSize says how large a skill is, and how many files and scripts it has. */
export const packageSize = (bytes: string, files: number, scripts: number): string =>
  [
    bytes,
    msg("skill.fileCount", { count: files }),
    ...(scripts ? [msg("skill.scriptCount", { count: scripts })] : []),
  ].join(msg("language.comma"));

/** commentBy shows a comment with its author, if known. */
export const commentBy = (who: string, text: string): string => (who ? msg("skill.note", { who, text }) : text);

/** changeSummary says how many files differ between two versions, and what a scan finds. */
export function changeSummary(files: number, same: number, found: number, gone: number): string {
  const scan = found ? msg("skill.newFindings", { count: found }) : msg("skill.noNewFindings");
  const parts = [msg("skill.filesDiffer", { count: files }), msg("skill.filesSame", { count: same }), scan];
  return [...parts, ...(gone ? [msg("skill.goneFindings", { count: gone })] : [])].join(msg("language.comma"));
}

/** findingsIn says how many findings are in how many files. */
export const findingsIn = (count: number, files: number): string =>
  msg("skill.foundIn", { count, files: msg("skill.fileCount", { count: files }) });

/** timesText says how often something occurs. */
export const timesText = (count: number): string => msg("skill.times", { count });

/** lastDays names a period that ends today. */
export const lastDays = (n: number): string => (n === 365 ? msg("skill.lastYear") : msg("skill.lastDays", { n }));

/** onDay says how often a skill was loaded and its tools were called on a day. */
export const onDay = (day: string, loads: number, calls: number): string =>
  msg("skill.onDay", {
    day,
    loads: msg("skill.loadCount", { count: loads }),
    calls: msg("skill.callCount", { count: calls }),
  });
