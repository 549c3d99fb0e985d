import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, failed, When } from "../../shared/ui";
import type { Opened } from "./opened";
import { Update } from "./update";

type Status = Schema["SkillSourceStatus"];

interface FailureProps extends Omit<Opened, "onClose"> {
  status: Status;
}

/** SourceFailure says why the checks of a skill's source fail, and what a user who may change the skill can do. */
export function SourceFailure({ skill, status, again }: FailureProps) {
  const [open, setOpen] = useState(false);
  const params = { path: { skill: skill.id } };

  /** leave updates the page, which no longer shows this note, and keeps the focus in it. */
  const leave = async () => {
    await again();
    document.querySelector<HTMLElement>("main h1")?.focus();
  };
  const check = async () => {
    const now = await got(api.POST("/api/v1/skills/{skill}/check", { params }));
    if (now.failedSince) {
      failed(new Error(msg("skill.sourceStillFails")));
      return again();
    }
    done(msg("skill.sourceWorks"));
    await leave();
  };
  const pin = async () => {
    await got(api.PATCH("/api/v1/skills/{skill}", { params, body: { pinned: true } }));
    done(msg("skill.pinnedNow"));
    await leave();
  };
  return (
    <div class="note warn stack tight library-failure">
      <p>
        {msg("skill.sourceFailed", { date: formatTime(status.failedSince!), error: status.error ?? "" })}{" "}
        <span class="small muted">
          {msg("skill.lastCheck")} <When time={status.checked} />
        </span>
      </p>
      <p class="small">{msg("skill.sourceFailedHint")}</p>
      <div class="row">
        <ActionButton small act={check}>
          {msg("skill.checkNow")}
        </ActionButton>
        <Button small onClick={() => setOpen(true)}>
          {msg("skill.update")}
        </Button>
        <ActionButton small act={pin}>
          {msg("skill.pin")}
        </ActionButton>
      </div>
      {open && <Update skill={skill} again={again} onClose={() => setOpen(false)} />}
    </div>
  );
}
