import { api, got } from "../api/client";
import { failed } from "../ui";
import type { DraftFile } from "./files";
import { asDraft, type Work } from "./work";

/** The package of a draft, as the hub makes it; what keeps it from being one is refused here. */
export async function pack(work: Pick<Work, "of">, files: DraftFile[]): Promise<Blob> {
  return (await got(api.POST("/api/v1/drafts/package", { body: asDraft(work, files), parseAs: "blob" }))) as unknown as Blob;
}

/** What a saved skill is found by. */
export interface Saved {
  skill: string;
  name: string;
  number: number;
}

// The client would write a body as JSON.
const asIs = { headers: { "Content-Type": "application/zip" }, bodySerializer: (body: unknown) => body as BodyInit };

/** Saves a draft as a new skill, or as a version of the one that it is of. */
export async function save(work: Work, files: DraftFile[], name: string): Promise<Saved> {
  const body = (await pack(work, files)) as unknown as string;
  const query = { file_name: `${name}.zip` };
  if (work.of) {
    const version = await got(api.POST("/api/v1/skills/{skill}/versions", { params: { path: { skill: work.of.id }, query }, body, ...asIs }));
    return { skill: work.of.id, name, number: version.number };
  }
  const skill = await got(api.POST("/api/v1/skills", { params: { query: { ...query, namespace: work.namespace } }, body, ...asIs }));
  return { skill: skill.id, name, number: skill.number };
}

/** Hands the package to the browser, to be saved as a file. */
export async function download(work: Work) {
  try {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await pack(work, work.files));
    link.download = `${work.name || "skill"}.zip`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    failed(error);
  }
}
