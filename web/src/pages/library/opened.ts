import type { Schema } from "../../shared/api/client";

/** The skill and the version that a tab shows. */
export interface Looked {
  skill: Schema["SkillDetail"];
  version: Schema["SkillVersion"];
  /** Loads the skill again after a change. */
  again: () => Promise<void>;
}

/** The skill that a dialog is about. */
export interface Opened {
  skill: Schema["SkillDetail"];
  again: () => Promise<void>;
  onClose: () => void;
}

/** can reports whether the user may do something with a skill. */
export const can = (skill: Schema["SkillDetail"], action: string): boolean => skill.can.includes(action);
