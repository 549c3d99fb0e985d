import { api, got } from "../api/client";
import { failed } from "../ui";
import type { DraftFile } from "./files";
import { asDraft, type Work } from "./work";

/** The package of a draft, as the hub makes it; what keeps it from being one is refused here. */
async function pack(work: Pick<Work, "of">, files: DraftFile[]): Promise<{ zip: Blob; file: string }> {
  const answer = api.POST("/api/v1/drafts/package", { body: asDraft(work, files), parseAs: "blob" });
  const zip = (await got(answer)) as unknown as Blob;
  return { zip, file: fileName((await answer).response.headers.get("Content-Disposition") ?? "") };
}

/** The name of a file that is to be saved, as RFC 6266 has it. */
function fileName(disposition: string): string {
  const [, any] = /filename\*=UTF-8''([^;]+)/.exec(disposition) ?? [];
  const [, plain] = /filename="([^"]+)"/.exec(disposition) ?? [];
  return any ? decodeURIComponent(any) : (plain ?? "skill.zip");
}

/** What a saved skill is found by. */
interface Saved {
  skill: string;
  name: string;
  number: number;
}

// The client would write a body as JSON.
const asIs = { headers: { "Content-Type": "application/zip" }, bodySerializer: (body: unknown) => body as BodyInit };

/** Saves a draft as a new skill, or as a version of the one that it is of. */
export async function save(work: Work, files: DraftFile[], name: string): Promise<Saved> {
  const { zip, file } = await pack(work, files);
  const body = zip as unknown as string;
  const query = { file_name: file }; // as the hub reads the files, not as they were when it was asked last
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
    const { zip, file } = await pack(work, work.files);
    link.href = URL.createObjectURL(zip);
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    failed(error);
  }
}
