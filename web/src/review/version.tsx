import { useLocation, useRoute } from "preact-iso";
import { useState } from "preact/hooks";
import { api, got, type Schema, useAsked } from "../api/client";
import { usePeople } from "../library/places";
import { Page } from "../shell/page";
import { Check, SelectField, Shown, Tag, When } from "../ui";
import { Changes } from "./changes";
import { Decide } from "./decide";
import { Findings } from "./findings";
import { Found } from "./queue";
import { w } from "./words";

/** One version with what changed, what was found and the decision. */
export function Version() {
  const { params } = useRoute();
  const { query, route, path } = useLocation();
  const skill = params.skill!;
  const number = params.number!;
  const data = useAsked((signal) => load(skill, number, signal), [skill, number]);
  const title = data.data ? w().of(data.data.skill.name, data.data.version.number) : w().title;
  return (
    <Page title={title} actions={<a class="button" href="/review">{w().all}</a>}>
      <Shown asked={data} waiting={w().waiting}>
        {(all) => <Look all={all} from={query.from} onFrom={(from) => route(`${path}?from=${from}`, true)} again={() => void data.again()} />}
      </Shown>
    </Page>
  );
}

export interface Loaded {
  skill: Schema["SkillDetail"];
  version: Schema["SkillVersion"];
  versions: Schema["SkillVersion"][];
  manifest: Schema["Manifest"];
  scan: Schema["Scan"];
}

async function load(skill: string, version: string, signal: AbortSignal): Promise<Loaded> {
  const path = { skill, version };
  const [detail, one, versions, manifest, scan] = await Promise.all([
    got(api.GET("/api/v1/skills/{skill}", { params: { path: { skill } }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions/{version}", { params: { path }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions", { params: { path: { skill } }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions/{version}/manifest", { params: { path }, signal })),
    got(api.GET("/api/v1/skills/{skill}/versions/{version}/findings", { params: { path }, signal })),
  ]);
  return { skill: detail, version: one, versions: versions.items, manifest, scan };
}

function Look({ all, from, onFrom, again }: { all: Loaded; from?: string; onFrom: (from: string) => void; again: () => void }) {
  const t = w();
  const { version: v, versions } = all;
  const [sides, setSides] = useState(true);
  const before = versions.filter((x) => x.number < v.number);
  // What was approved was read; what changed since is what has to be.
  const basis = from ?? String((before.find((x) => x.review === "approved") ?? before[0])?.number ?? 0);
  return (
    <div class="review-columns">
      <div class="stack loose">
        <Facts all={all} />
        <div class="row review-basis">
          <SelectField label={t.against} value={basis} onText={onFrom} options={[...before.map((x): [string, string] => [String(x.number), t.number(x.number) + (x.review === "approved" ? ` (${t.approvedMark})` : "")]), ["0", t.nothing]]} />
          <Check label={t.beside} checked={sides} onCheck={setSides} />
        </div>
        <Findings scan={all.scan} />
        <Changes all={all} from={Number(basis)} sides={sides} />
      </div>
      <aside class="review-decision" aria-label={t.decide}><Decide all={all} again={again} /></aside>
    </div>
  );
}

function Facts({ all: { version: v, skill } }: { all: Loaded }) {
  const t = w();
  const person = usePeople();
  return (
    <dl class="facts">
      <dt>{t.skill}</dt><dd><a href={`/library/${skill.id}`}>{skill.displayName || skill.name}</a> <span class="muted">{v.description}</span></dd>
      <dt>{t.by}</dt><dd>{person(v.createdBy)}, <When time={v.created} /></dd>
      <dt>{t.digest}</dt><dd class="mono">{v.digest}</dd>
      <dt>{t.findings}</dt><dd><Found version={v} /></dd>
      <dt>{t.decide}</dt><dd><Tag look={v.review === "approved" ? "good" : v.review === "rejected" ? "bad" : "warn"}>{t.state[v.review]}</Tag> {v.reviewer && <>{person(v.reviewer)}{v.reviewed && <>, <When time={v.reviewed} /></>}</>} {v.note}</dd>
    </dl>
  );
}
