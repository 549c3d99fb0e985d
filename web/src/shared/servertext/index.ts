import { computed, signal } from "@preact/signals";
import { findMsg, messagesOf } from "../i18n/messages";
import type { DiagnosticPatterns } from "./diagnosticpatterns";
import type { ProblemPatterns } from "./patterns";

/** A problem that the hub found in a SKILL.md. */
export interface Diagnosed {
  code: string;
  message: string;
  fix?: string;
}

/** A refusal of a request by the hub. */
export interface Refused {
  code: string;
  detail: string;
  next?: string;
}

/** Whether the language of the page has translations of the hub's texts. English has none: the hub writes English. */
export const translates = computed(() => messagesOf("diagnostic").length > 0);

const validatorSuffix = "; the reference validator reads only the text between the first two ---, wherever they are";
const folderSuffix = /; it loads under its folder's name (".*")$/;

/** The patterns of diagnostics. They are loaded with the first diagnostic that has a translation. */
const diagnosticPatterns = signal<Record<string, DiagnosticPatterns> | undefined>(undefined);
let loading: Promise<void> | undefined;

/** loadDiagnosticPatterns loads the patterns of diagnostics; then the page shows diagnostics in its language. */
export function loadDiagnosticPatterns(): Promise<void> {
  loading ??= import("./diagnosticpatterns").then(
    (loaded) => void (diagnosticPatterns.value = loaded.diagnosticPatterns),
    () => void (loading = undefined), // diagnostics stay English until the next one
  );
  return loading;
}

/** translateDiagnostic returns a diagnostic in the language of the page, or as it is if there is no translation yet. */
export function translateDiagnostic<T extends Diagnosed>(d: T): T {
  if (findMsg("diagnostic", `${d.code}.message`) === undefined) return d;
  if (!diagnosticPatterns.value) {
    void loadDiagnosticPatterns();
    return d;
  }
  const key = `diagnostic.${d.code}`;
  const { message: pattern, fix: fixPattern } = diagnosticPatterns.value[d.code] ?? {};
  if (d.message.endsWith(validatorSuffix)) {
    const text = translate(key, "message", d.message.slice(0, -validatorSuffix.length), pattern);
    const message = findMsg("diagnostic", "suffix.validator", { text }) ?? d.message;
    return { ...d, message, fix: findMsg("diagnostic", "suffix.validatorFix") };
  }
  const folder = folderSuffix.exec(d.message);
  const text = translate(key, "message", folder ? d.message.slice(0, folder.index) : d.message, pattern);
  const message = folder ? (findMsg("diagnostic", "suffix.folder", { text, 1: folder[1]! }) ?? d.message) : text;
  return { ...d, message, ...(d.fix && { fix: translate(key, "fix", d.fix, fixPattern) }) };
}

const problemPatterns = signal<Record<string, ProblemPatterns[]> | undefined>(undefined);

/** loadProblemPatterns loads the patterns of refusals if the language of the page has translations of them. */
export async function loadProblemPatterns(): Promise<void> {
  if (problemPatterns.value || !messagesOf("problem").length) return;
  const loaded = await import("./patterns").catch(() => undefined); // refusals stay English until the next one
  if (loaded) problemPatterns.value = loaded.problemPatterns;
}

/** translateProblem returns a refusal in the language of the page, or as it is if there is no translation. */
export function translateProblem<T extends Refused>(p: T): T {
  if (!problemPatterns.value) {
    void loadProblemPatterns();
    return p;
  }
  const reasons = problemPatterns.value[p.code] ?? [{}];
  const at = reasons.findIndex((r) => !r.detail || r.detail.test(p.detail));
  const key = `problem.${p.code}${at > 0 ? `.${at + 1}` : ""}`;
  if (at < 0 || findMsg(key, "detail") === undefined) return p;
  const { detail, next } = reasons[at]!;
  return {
    ...p,
    detail: translate(key, "detail", p.detail, detail),
    ...(p.next && { next: translate(key, "next", p.next, next) }),
  };
}

/** translate fills a translation with the groups of the pattern. Where the pattern does not match, English stays. */
function translate(key: string, name: string, english: string, pattern?: RegExp): string {
  const groups = pattern ? pattern.exec(english) : [];
  if (!groups) return english;
  return findMsg(key, name, Object.fromEntries([...groups].map((group, i) => [String(i), group ?? ""]))) ?? english;
}
