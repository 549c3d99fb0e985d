import type { Schema } from "../../shared/api/client";

/** A version under review, with its skill, its files and its scan. */
export interface Loaded {
  skill: Schema["SkillDetail"];
  version: Schema["SkillVersion"];
  versions: Schema["SkillVersion"][];
  manifest: Schema["Manifest"];
  scan: Schema["Scan"];
}
