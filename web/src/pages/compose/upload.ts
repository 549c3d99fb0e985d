import { api, got } from "../../shared/api/client";
import { failed } from "../../shared/ui";
import { asDraft, type Work } from "./draftstate";
import type { DraftFile } from "./files";

/** pack makes the hub build the package of a draft. It fails for an invalid draft. */
async function pack(work: Pick<Work, "of">, files: DraftFile[]): Promise<{ zip: Blob; file: string }> {
  const answer = api.POST("/api/v1/drafts/package", { body: asDraft(work, files), parseAs: "blob" });
  const zip = (await got(answer)) as unknown as Blob;
  return { zip, file: fileName((await answer).response.headers.get("Content-Disposition") ?? "") };
}

/** fileName reads the file name of a Content-Disposition header (RFC 6266). */
function fileName(disposition: string): string {
  const [, any] = /filename\*=UTF-8''([^;]+)/.exec(disposition) ?? [];
  const [, plain] = /filename="([^"]+)"/.exec(disposition) ?? [];
  return any ? decodeURIComponent(any) : (plain ?? "skill.zip");
}

/** The result of a save. */
interface Saved {
  skill: string;
  name: string;
  number: number;
}

// The client would encode the body as JSON.
const asIs = { headers: { "Content-Type": "application/zip" }, bodySerializer: (body: unknown) => body as BodyInit };

/** save saves a draft as a new skill, or as a new version if none is newer than `base`. */
export async function save(
  work: Work,
  files: DraftFile[],
  name: string,
  changelog: string,
  base?: number,
): Promise<Saved> {
  const { zip, file } = await pack(work, files);
  const body = zip as unknown as string;
  const query = { file_name: file, ...(changelog && { changelog }) }; // the hub reads these files, not those of the last check
  if (work.of) {
    const version = await got(
      api.POST("/api/v1/skills/{skill}/versions", {
        params: { path: { skill: work.of.id }, query: { ...query, base } },
        body,
        ...asIs,
      }),
    );
    return { skill: work.of.id, name, number: version.number };
  }
  const skill = await got(
    api.POST("/api/v1/skills", { params: { query: { ...query, namespace: work.namespace } }, body, ...asIs }),
  );
  return { skill: skill.id, name, number: skill.number };
}

/** download makes the browser save the package. */
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
