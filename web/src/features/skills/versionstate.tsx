import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Icon, Tag, type IconName } from "../../shared/ui";

type Version = Schema["SkillVersion"];

const looks: Record<Version["state"], { look: "" | "good" | "warn" | "bad"; icon: IconName }> = {
  pending: { look: "warn", icon: "eye" },
  "changes-requested": { look: "warn", icon: "compose" },
  rejected: { look: "bad", icon: "close" },
  approved: { look: "good", icon: "check" },
  superseded: { look: "", icon: "up" },
  withdrawn: { look: "", icon: "again" },
};

/** VersionState shows the state of a version by an icon and a word. */
export function VersionState({ version: { state } }: { version: Pick<Version, "state"> }) {
  const { look, icon } = looks[state];
  return (
    <Tag look={look} title={msg(`skill.stateHints.${state}`)}>
      <Icon name={icon} size={14} /> {msg(`skill.states.${state}`)}
    </Tag>
  );
}

/** cleared reports whether a version may be made current. */
export const cleared = (v?: Pick<Version, "state">) =>
  !!v && (v.state === "approved" || v.state === "superseded" || v.state === "withdrawn");
