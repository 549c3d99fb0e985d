import { useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import { useUserNames } from "../../features/skills/namespaces";
import { TryVersion } from "../../features/skills/tryversion";
import { VersionState } from "../../features/skills/versionstate";
import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Check, Empty, Problem, SelectField, Shown, When } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Changes } from "./changes";
import { Comments } from "./comments";
import { Decide } from "./decide";
import { DiscussionProvider, useNewDiscussion } from "./discussion";
import { Findings } from "./findings";
import type { Loaded } from "./loaded";
import { Found } from "./queue";
import { ReviewProvider, useStatus, useViewed } from "./reviewstate";
import { History, Needs, TestResults } from "./status";

/** Version shows a version with its changes, findings and decision. */
export function Version() {
  const { params } = useRoute();
  const { query, route, path } = useLocation();
  const skill = params.skill!;
  const number = params.number!;
  const data = useLoad((signal) => load(skill, number, signal), [skill, number]);
  const title = data.data
    ? msg("review.of", { name: data.data.skill.name, number: data.data.version.number })
    : msg("review.title");
  return (
    <Page
      title={title}
      actions={
        <>
          {data.data && !data.data.version.withheld && <TryVersion {...data.data} />}
          <a class="button" href="/review">
            {msg("review.all")}
          </a>
        </>
      }
    >
      <Shown asked={data} waiting={msg("review.waiting")}>
        {(all) =>
          "manifest" in all ? (
            <Look
              all={all}
              from={query.from}
              onFrom={(from) => route(`${path}?from=${from}`, true)}
              again={() => void data.again()}
            />
          ) : (
            <Empty title={msg("review.notYou")}>{msg("review.cannot")}</Empty>
          )
        }
      </Shown>
    </Page>
  );
}

/** A version that only its uploader and reviewers may see. */
type Withheld = Pick<Loaded, "skill" | "version">;

async function load(skill: string, version: string, signal: AbortSignal): Promise<Loaded | Withheld> {
  const path = { skill, version };
  const [detail, one, versions] = await Promise.all([
    got(api.GET("/api/v1/skills/{skill}", { params: { path: { skill } }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions/{version}", { params: { path }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions", { params: { path: { skill } }, signal })),
  ]);
  if (one.withheld) return { skill: detail, version: one };
  const [manifest, scan] = await Promise.all([
    got(api.GET("/api/v1/skills/{skill}/versions/{version}/manifest", { params: { path }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions/{version}/findings", { params: { path }, signal })),
  ]);
  return { skill: detail, version: one, versions: versions.items, manifest, scan };
}

function Look({
  all,
  from,
  onFrom,
  again,
}: {
  all: Loaded;
  from?: string;
  onFrom: (from: string) => void;
  again: () => void;
}) {
  const { version: v, versions } = all;
  const status = useStatus(all);
  const discussion = useNewDiscussion(all, () => void status.again());
  const viewed = useViewed(all);
  const [sides, setSides] = useState(true);
  const before = versions.filter((x) => x.number < v.number);
  // Compare with the last approved version, which a reviewer has read.
  const basis = from ?? String((before.find((x) => x.review === "approved") ?? before[0])?.number ?? 0);
  return (
    <DiscussionProvider value={discussion}>
      <ReviewProvider value={viewed}>
        <div class="review-columns">
          <div class="stack loose">
            <Facts all={all} />
            <Needs status={status} skill={all.skill.id} again={again} />
            <Comments number={v.number} />
            <div class="row review-basis">
              <SelectField
                label={msg("review.against")}
                value={basis}
                onText={onFrom}
                options={[
                  ...before.map((x): [string, string] => [
                    String(x.number),
                    msg("review.number", { n: x.number }) +
                      (x.review === "approved" ? ` (${msg("review.approvedMark")})` : ""),
                  ]),
                  ["0", msg("review.nothing")],
                ]}
              />
              <Check label={msg("review.beside")} checked={sides} onCheck={setSides} />
            </div>
            <Findings scan={all.scan} unscanned={v.unscanned} />
            <TestResults />
            {viewed.error && <Problem error={viewed.error} again={viewed.again} />}
            <Changes all={all} from={Number(basis)} sides={sides} />
            <History status={status} />
          </div>
          <aside class="review-decision" aria-label={msg("review.decide")}>
            <Decide key={`${all.skill.id}/${v.number}`} all={all} status={status} again={again} />
          </aside>
        </div>
      </ReviewProvider>
    </DiscussionProvider>
  );
}

function Facts({ all: { version: v, skill } }: { all: Loaded }) {
  const person = useUserNames();
  return (
    <dl class="facts">
      <dt>{msg("review.skill")}</dt>
      <dd>
        <a href={`/library/${skill.id}`}>{skill.displayName || skill.name}</a>{" "}
        <span class="muted">{v.description}</span>
      </dd>
      <dt>{msg("review.by")}</dt>
      <dd>
        {person(v.createdBy)}, <When time={v.created} />
      </dd>
      {v.changelog && (
        <>
          <dt>{msg("review.changelog")}</dt>
          <dd>{v.changelog}</dd>
        </>
      )}
      <dt>{msg("review.digest")}</dt>
      <dd class="mono">{v.digest}</dd>
      <dt>{msg("review.findings")}</dt>
      <dd>
        <Found version={v} />
      </dd>
      <dt>{msg("review.decide")}</dt>
      <dd>
        <VersionState version={v} />{" "}
        {v.reviewer && (
          <>
            {person(v.reviewer)}
            {v.reviewed && (
              <>
                , <When time={v.reviewed} />
              </>
            )}
          </>
        )}{" "}
        {v.note}
      </dd>
      {v.requiredApprovers > 1 && (
        <>
          <dt>{msg("review.approvers")}</dt>
          <dd>{v.approvers.map(person).join(", ") || msg("review.noApprovers")}</dd>
        </>
      )}
    </dl>
  );
}
