import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { composeOf, useAddress } from "../../features/skills/skilladdress";
import { cleared } from "../../features/skills/versionstate";
import { api, got, type Schema } from "../../shared/api/client";
import { mayReview } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, When } from "../../shared/ui";
import { can } from "./opened";
import { SourceFailure } from "./sourcefailure";
import { Update } from "./update";

type Skill = Schema["SkillDetail"];
type Version = Schema["SkillVersion"];

/** The newer states of a skill. */
export interface Updates {
  /** The newest version that was not rejected, if it is newer than the current one. */
  version?: Version;
}

/** loadUpdates loads the newer states. It returns nothing if the user has no access. */
export async function loadUpdates(skill: Skill, signal: AbortSignal): Promise<Updates> {
  if (!skill.currentVersion) return {};
  const params = { path: { skill: skill.id }, query: { limit: 10 } };
  const versions = await got(api.GET("/api/v1/skills/{skill}/versions", { signal, params })).catch(() => undefined);
  return { version: versions?.items.find((v) => v.number > skill.number && v.state !== "rejected") };
}

interface NewerProps {
  skill: Skill;
  updates: Updates;
  again: () => Promise<void>;
}

/** Newer shows newer states and the possible actions. */
export function Newer({ skill, updates, again }: NewerProps) {
  const now = skill.currentVersion;
  const source = skill.sourceStatus;
  return (
    <>
      {updates.version?.state === "changes-requested" ? (
        <Requested skill={skill} version={updates.version} />
      ) : updates.version ? (
        <PendingVersion skill={skill} version={updates.version} again={again} />
      ) : (
        now &&
        (now.state === "changes-requested" ? (
          <Requested skill={skill} version={now} />
        ) : (
          unseen(now) && <InUse skill={skill} version={now} />
        ))
      )}
      {source?.newest && <Upstream skill={skill} commit={source.newest} checked={source.checked} again={again} />}
      {source?.failedSince && <SourceFailure skill={skill} status={source} again={again} />}
    </>
  );
}

const unseen = (v: Version) => v.code && v.review === "pending";
const review = (skill: Skill, v: Version) => `/review/${encodeURIComponent(skill.id)}/${v.number}`;

function PendingVersion({ skill, version: v, again }: Omit<NewerProps, "updates"> & { version: Version }) {
  const at = useAddress();

  const use = async () => {
    await got(
      api.POST("/api/v1/skills/{skill}/versions/{version}/use", {
        params: { path: { skill: skill.id, version: String(v.number) } },
      }),
    );
    done(msg("skill.madeCurrent", { n: v.number }));
    await again();
  };
  const waits = v.state === "pending";
  return (
    <Line
      text={
        waits
          ? msg("skill.newerWaits", { n: v.number, now: skill.number })
          : msg("skill.newer", { n: v.number, now: skill.number })
      }
      time={v.created}
    >
      {!v.withheld && (
        <a
          class="button small"
          href={at.with({
            tab: "versions",
            from: String(skill.number),
            to: String(v.number),
            version: "",
            file: "",
            line: "",
          })}
        >
          {msg("skill.whatChanges")}
        </a>
      )}
      {waits && mayReview(skill.namespace, v) && (
        <a class="button small" href={review(skill, v)}>
          {msg("skill.review")}
        </a>
      )}
      {cleared(v) && can(skill, "skill.change") && (
        <ActionButton small act={use}>
          {msg("skill.makeCurrent")}
        </ActionButton>
      )}
    </Line>
  );
}

/** Requested shows a reviewer's request for changes to a version, with the note. */
export function Requested({ skill, version: v }: { skill: Skill; version: Version }) {
  return (
    <Line
      text={
        v.note
          ? msg("skill.changesRequestedNote", { n: v.number, note: v.note })
          : msg("skill.changesRequested", { n: v.number })
      }
      time={v.reviewed ?? v.created}
    >
      {!v.withheld && (
        <a class="button small" href={review(skill, v)}>
          {msg("skill.openReview")}
        </a>
      )}
      {!v.withheld && can(skill, "skill.change") && (
        <a class="button small" href={composeOf(skill.id, v.number)}>
          {msg("skill.editVersion")}
        </a>
      )}
    </Line>
  );
}

function InUse({ skill, version: v }: { skill: Skill; version: Version }) {
  return (
    <Line text={msg("skill.codeWaits")} time={v.created}>
      {mayReview(skill.namespace, v) && (
        <a class="button small" href={review(skill, v)}>
          {msg("skill.review")}
        </a>
      )}
    </Line>
  );
}

function Upstream({
  skill,
  commit,
  checked,
  again,
}: Omit<NewerProps, "updates"> & { commit: string; checked: string }) {
  const [open, setOpen] = useState(false);

  return (
    <>
      <Line text={msg("skill.newerAtSource", { commit: commit.slice(0, 10) })} time={checked}>
        <Button small onClick={() => setOpen(true)}>
          {msg("skill.whatIsNew")}
        </Button>
      </Line>
      {open && <Update skill={skill} again={again} onClose={() => setOpen(false)} />}
    </>
  );
}

function Line({ text, time, children }: { text: string; time: string; children: ComponentChildren }) {
  return (
    <div class="note library-news">
      <div class="row">
        <span class="grow">
          {text}{" "}
          <span class="small muted">
            <When time={time} />
          </span>
        </span>
        {children}
      </div>
    </div>
  );
}
