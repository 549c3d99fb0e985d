import { api, got, refusal, type Schema } from "../../shared/api/client";
import { fileOf, type DraftFile } from "./files";

/** The number of parallel downloads. */
const maxConcurrent = 6;

/** filesOf loads the files of a version. */
export async function filesOf(skill: string, version: number | "current", stop: AbortSignal): Promise<DraftFile[]> {
  const params = { path: { skill, version: String(version) } };
  const { files } = await got(api.GET("/api/v1/skills/{skill}/versions/{version}/manifest", { params, signal: stop }));
  const left = [...files],
    out: DraftFile[] = [];
  const worker = async () => {
    for (let f = left.pop(); f; f = left.pop()) out.push(fileOf(f.path, await bytes(skill, version, f.path, stop)));
  };
  await Promise.all(Array.from({ length: maxConcurrent }, worker));
  return out;
}

/** bytes loads a file without the typed client, which would encode the slashes of the path. */
async function bytes(skill: string, version: number | "current", path: string, stop: AbortSignal): Promise<Uint8Array> {
  const at = path.split("/").map(encodeURIComponent).join("/");
  const answer = await fetch(`/api/v1/skills/${encodeURIComponent(skill)}/versions/${version}/files/${at}`, {
    signal: stop,
  });
  if (!answer.ok) throw refusal(answer.status, await answer.json().catch(() => undefined));
  return new Uint8Array(await answer.arrayBuffer());
}

/** newestVersion returns the newest version of a skill, current or not. */
export async function newestVersion(id: string, stop?: AbortSignal): Promise<Schema["SkillVersion"] | undefined> {
  const params = { path: { skill: id }, query: { limit: 1 } };
  const { items } = await got(api.GET("/api/v1/skills/{skill}/versions", { params, signal: stop }));
  return items[0];
}

/** A skill with the files of one of its versions. */
interface LoadedSkill {
  detail: Schema["SkillDetail"];
  /** The version of the files. */
  version: number;
  files: DraftFile[];
  /** The newest version when the files were loaded. */
  newest?: Schema["SkillVersion"];
}

/** skillWithFiles loads a skill with the files of a version, by default of the current one. */
export async function skillWithFiles(id: string, version: number, stop: AbortSignal): Promise<LoadedSkill> {
  const params = { path: { skill: id } };
  const [detail, newest] = await Promise.all([
    got(api.GET("/api/v1/skills/{skill}", { params, signal: stop })),
    newestVersion(id, stop),
  ]);
  const number = version || detail.number;
  return { detail, version: number, files: await filesOf(id, number, stop), newest };
}
