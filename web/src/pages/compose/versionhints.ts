import type { Changed } from "./changedfiles";

/** The size of a version step. */
type Step = "patch" | "minor" | "major";

/** next returns the next version number, or undefined if the version is not numeric. */
function next(version: string, step: Step): string | undefined {
  const parts = /^(v?)(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(version.trim());
  if (!parts) return undefined;
  const [, v, major, minor, patch] = parts;
  const at = (s: string | undefined) => Number(s ?? 0);
  if (step === "major")
    return `${v}${at(major) + 1}${minor !== undefined ? ".0" : ""}${patch !== undefined ? ".0" : ""}`;
  if (step === "minor" || patch === undefined) return `${v}${major}.${at(minor) + 1}${patch !== undefined ? ".0" : ""}`;
  return `${v}${major}.${minor}.${at(patch) + 1}`;
}

/** stepOf returns the step for a change. Changed files count more than changed text. */
const stepOf = (changed: Changed[]): Step =>
  changed.some((c) => c.how === "removed") ? "major" : changed.some((c) => c.how === "added") ? "minor" : "patch";

/** suggestions returns possible next versions, the best one first. */
export function suggestions(version: string, changed: Changed[]): string[] {
  const step = stepOf(changed);
  const steps: Step[] = [step, ...(["patch", "minor", "major"] as const).filter((s) => s !== step)];
  return [...new Set(steps.map((s) => next(version, s)).filter((v): v is string => v !== undefined))];
}
