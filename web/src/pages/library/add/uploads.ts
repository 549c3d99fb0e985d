import { signal } from "@preact/signals";
import { send } from "../../../features/upload/send";
import { Refusal, type Schema } from "../../../shared/api/client";
import { limits } from "../../../shared/api/limits";
import { size } from "../../../shared/i18n/format";
import { msg } from "../../../shared/i18n/messages";
import type { Package } from "./pack";

/** The progress of an upload. */
type State =
  | { at: "waits" | "packing" | "checking" }
  | { at: "sending"; share: number }
  | { at: "done"; skill: string; code: boolean; version?: number; same?: boolean }
  | { at: "refused"; error: Error };

export interface Upload {
  id: number;
  /** The number of the packages that were added together. */
  batch: number;
  pack: Package;
  namespace: string;
  lenient: boolean;
  /** The skill that gets the package as its new version. */
  version?: { skill: string; changelog: string };
  state: State;
}

/** What the user chose for the packages that are added together. */
type Choices = Pick<Upload, "namespace" | "lenient" | "version">;

/** The uploads since the page was loaded, newest last. They continue on other pages. */
export const uploads = signal<Upload[]>([]);

let last = 0;
let batches = 0;
let running = false;

/** enqueue adds packages to the queue. */
export function enqueue(packages: Package[], choices: Choices) {
  batches++;
  uploads.value = [
    ...uploads.value,
    ...packages.map((pack) => ({
      id: ++last,
      batch: batches,
      pack,
      ...choices,
      state: { at: "waits" } as State,
    })),
  ];
  void run();
}

export const forget = (id: number) => (uploads.value = uploads.value.filter((u) => u.id !== id));

function put(id: number, state: State) {
  uploads.value = uploads.value.map((u) => (u.id === id ? { ...u, state } : u));
}

/** run uploads the queue one by one. */
async function run() {
  if (running) return;
  running = true;
  for (let next; (next = uploads.value.find((u) => u.state.at === "waits"));)
    await (next.version ? uploadVersion(next, next.version) : uploadNew(next));
  running = false;
}

async function uploadNew(u: Upload) {
  const query = new URLSearchParams({ file_name: u.pack.name });
  if (u.namespace) query.set("namespace", u.namespace);
  if (u.lenient) query.set("lenient", "true");
  try {
    const made = await transfer<Schema["SkillDetail"]>(u, `/api/v1/skills?${query}`);
    put(u.id, { at: "done", skill: made.id, code: made.code && !made.runnable });
  } catch (error) {
    const taken = problemOf(error)?.taken;
    if (taken?.same && taken.skill_id) put(u.id, { at: "done", skill: taken.skill_id, code: false, same: true });
    else put(u.id, { at: "refused", error: error as Error });
  }
}

/** retry uploads a refused package again, with other choices. */
export function retry(u: Upload, choices: Partial<Choices> = {}) {
  uploads.value = uploads.value.map((x) => (x.id === u.id ? { ...x, ...choices, state: { at: "waits" } } : x));
  void run();
}

async function uploadVersion(u: Upload, { skill, changelog }: NonNullable<Upload["version"]>) {
  const query = new URLSearchParams({
    file_name: u.pack.name,
    ...(u.lenient && { lenient: "true" }),
    ...(changelog && { changelog }),
  });
  try {
    const made = await transfer<Schema["SkillVersion"]>(
      u,
      `/api/v1/skills/${encodeURIComponent(skill)}/versions?${query}`,
    );
    put(u.id, { at: "done", skill, code: made.code && !made.runnable, version: made.number });
  } catch (error) {
    if (problemOf(error)?.code === "exists") put(u.id, { at: "done", skill, code: false, same: true });
    else put(u.id, { at: "refused", error: error as Error });
  }
}

async function transfer<T>(u: Upload, path: string): Promise<T> {
  put(u.id, { at: "packing" });
  const zip = await u.pack.zip();
  const most = (await limits()).package;
  if (zip.size > most) throw new Error(msg("add.tooBig", { name: u.pack.name, most: size(most) }));
  return send<T>(path, zip, (share) => put(u.id, share < 1 ? { at: "sending", share } : { at: "checking" }));
}

/** problemOf returns the response of the hub that is the reason of an error. */
export const problemOf = (error: unknown) => (error instanceof Refusal ? error.problem : undefined);
