import { useLocation } from "preact-iso";
import { api, got, type Schema } from "../../shared/api/client";
import { mayReview, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton } from "../../shared/ui";
import { rememberTrial } from "./backtodraft";

interface TryProps {
  skill: Schema["SkillDetail"];
  version: Schema["SkillVersion"];
}

/** TryVersion starts a conversation with a version that is not current, if the user may use it. */
export function TryVersion({ skill, version: v }: TryProps) {
  const { route } = useLocation();
  const waits = v.state === "pending";
  const own = v.createdBy === me.value?.user.id;
  if (v.current || !skill.can.includes("skill.use") || (waits && !own && !mayReview(skill.namespace, v))) return null;
  const act = async () => {
    const body: Schema["NewSession"] = {
      title: msg("skill.trySession", { name: skill.name, n: v.number }),
      version: { skill: skill.id, number: v.number },
    };
    const session = await got(api.POST("/api/v1/sessions", { body }));
    rememberTrial(session.id, location.pathname + location.search);
    route(`/chat/${encodeURIComponent(session.id)}`);
  };
  return (
    <ActionButton icon="play" act={act} title={waits && v.code ? msg("skill.tryWaits") : undefined}>
      {msg("skill.tryVersion")}
    </ActionButton>
  );
}
