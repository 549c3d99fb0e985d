import { fileOf } from "../../features/skills/skilladdress";
import { api, got, refusal, useLoad, type Load, type Schema } from "../../shared/api/client";

/** useManifest loads the file list of a version. */
export function useManifest(skill: string, version: number): Load<Schema["Manifest"]> {
  return useLoad(
    (signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions/{version}/manifest", {
          signal,
          params: { path: { skill, version: String(version) } },
        }),
      ),
    [skill, version],
  );
}

/** useRequirements loads the fields and permissions of a version. */
export function useRequirements(skill: string, version: number): Load<Schema["SkillDiff"]> {
  return useLoad((signal) => loadRequirements(skill, version, signal), [skill, version]);
}

export const loadRequirements = (skill: string, version: number, signal: AbortSignal) =>
  got(
    api.GET("/api/v1/skills/{skill}/versions/{version}/diff", {
      signal,
      params: { path: { skill, version: String(version) }, query: { from: "none", brief: true } },
    }),
  );

/** The content of a file. */
type Content = { text: string } | { picture: string } | { other: string };

const pictures = /\.(png|jpe?g|gif|webp)$/i;
const mostText = 2_000_000;

/** useFile loads a file of a version: its text, or an address if it is not text. */
export function useFile(
  skill: string,
  version: number,
  file: { path: string; size: number } | undefined,
): Load<Content | undefined> {
  return useLoad(
    async (signal) => {
      if (!file) return undefined;
      const address = fileOf(skill, version, file.path);
      if (pictures.test(file.path)) return { picture: address };
      if (file.size > mostText) return { other: address };
      const answer = await fetch(address, { signal });
      if (!answer.ok) throw refusal(answer.status, await answer.json().catch(() => undefined));
      return answer.headers.get("Content-Type")?.startsWith("text/plain")
        ? { text: await answer.text() }
        : { other: address };
    },
    [skill, version, file?.path],
  );
}

/** mainFile returns the SKILL.md, in any spelling. */
export const mainFile = (files: Schema["ManifestFile"][]) =>
  files.find((f) => f.path === "SKILL.md") ?? files.find((f) => /^skill\.md$/i.test(f.path));

/** instructions returns a SKILL.md without its fields. */
export function instructions(text: string): string {
  const head = /^\uFEFF?---[ \t]*\r?\n(?:.*\r?\n)*?---[ \t]*(?:\r?\n|$)/.exec(text);
  return head ? text.slice(head[0].length) : text;
}
