import { useMemo, useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { Page } from "../shell/page";
import { Button, Icon, Shown, Tabs, Tag } from "../ui";
import { Actions } from "./actions";
import { chatWith, packageOf, useAddress } from "./address";
import { Connect } from "./connect";
import { titleOf } from "./filter";
import { Files } from "./files";
import { Findings } from "./findings";
import { Place, Rated, ReviewState } from "./glance";
import { Needs } from "./needs";
import { Newer, newsOf, type News } from "./newer";
import { Read } from "./read";
import { Stars } from "./stars";
import { Use } from "./use";
import { Versions } from "./versions";
import { d } from "./words-detail";
import { w } from "./words";

/** What the tabs of a skill get: the skill, and the version that is looked at. */
export interface Looked {
  skill: Schema["SkillDetail"];
  version: Schema["SkillVersion"];
  /** Ask for the skill again, after it was changed. */
  again: () => Promise<void>;
}

/** Whether somebody may do something with a skill. */
export const can = (skill: Schema["SkillDetail"], action: string) => skill.can.includes(action);

/** A skill: what it says, has, asks for, and what became of it. */
export function Detail({ id }: { id: string }) {
  const asked = useAsked(async (signal) => {
    const skill = await got(api.GET("/api/v1/skills/{skill}", { signal, params: { path: { skill: id } } }));
    return { skill, news: await newsOf(skill, signal) };
  }, [id]);
  if (!asked.data) return <Page title={w().library}><Back /><Shown asked={asked} waiting={d().waiting}>{() => null}</Shown></Page>;
  return <Known {...asked.data} again={asked.again} />;
}

const Back = () => <a class="row small" href="/library"><Icon name="left" size={16} />{w().library}</a>;

function Known({ skill, news, again }: Pick<Looked, "skill" | "again"> & { news: News }) {
  const number = useAddress().get("version");
  const other = number && Number(number) !== skill.number ? number : "";
  const version = useAsked(async (signal) => (other ? got(api.GET("/api/v1/skills/{skill}/versions/{version}", { signal, params: { path: { skill: skill.id, version: other } } })) : undefined), [skill.id, other]);
  const shown = other ? version.data : skill.currentVersion;
  return (
    <Page title={titleOf(skill)} lead={<Lead text={skill.description} />} actions={<Buttons skill={skill} again={again} number={other ? Number(other) : skill.number} />}>
      <Facts skill={skill} again={again} />
      {other ? <Older number={other} /> : <Newer skill={skill} news={news} again={again} />}
      {shown && String(shown.number) === (other || String(skill.number)) ? <Views look={{ skill, version: shown, again }} /> : other ? <Shown asked={version}>{() => null}</Shown> : <p class="note">{d().noRead}</p>}
    </Page>
  );
}

/** So much of a description is shown at first, in characters. */
const enough = 240;

/** What a skill is for; what its author wrote at length is cut until it is asked for. */
function Lead({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  if (text.length <= enough) return <>{text}</>;
  return (
    <>
      <span class={all ? "" : "library-cut"}>{text}</span>{" "}
      <button type="button" class="library-link" aria-expanded={all} onClick={() => setAll(!all)}>{all ? d().showLess : d().showAll}</button>
    </>
  );
}

function Buttons({ skill, again, number }: Pick<Looked, "skill" | "again"> & { number: number }) {
  const t = d();
  return (
    <>
      {can(skill, "skill.use") && <a class="button primary" href={chatWith(skill.name)}><Icon name="chat" />{t.useInChat}</a>}
      {can(skill, "skill.change") && <a class="button" href={`/compose/${encodeURIComponent(skill.id)}`}><Icon name="compose" />{t.edit}</a>}
      {can(skill, "skill.download") && <a class="button" href={packageOf(skill.id, number)} download><Icon name="download" />{t.download}</a>}
      <Actions skill={skill} again={again} />
    </>
  );
}

/** What there is to know at a glance, below the title. */
function Facts({ skill, again }: Pick<Looked, "skill" | "again">) {
  const t = d();
  return (
    <div class="row library-facts">
      <Back />
      <code>{skill.name}</code>
      <Place namespace={skill.namespace} />
      <Tag>{t.version(skill.number, skill.version)}</Tag>
      <ReviewState skill={skill} />
      {skill.hidden && <Tag look="warn">{w().hidden}</Tag>}
      {skill.source?.pinned && <Tag><Icon name="pin" size={12} />{t.pinned}</Tag>}
      {can(skill, "skill.rate") ? <Stars skill={skill} again={again} /> : <Rated rating={skill.rating} />}
    </div>
  );
}

/** Says that what is shown is not what is used. */
function Older({ number }: { number: string }) {
  const at = useAddress();
  return (
    <div class="note warn">
      <div class="row"><span class="grow">{d().older(number)}</span><Button small onClick={() => at.go({ version: "", file: "" })}>{d().toCurrent}</Button></div>
    </div>
  );
}

const tabs = ["read", "needs", "files", "versions", "findings", "use", "connect"] as const;

function Views({ look }: { look: Looked }) {
  const at = useAddress();
  const open = tabs.find((t) => t === at.get("tab")) ?? "read";
  const found = useMemo(() => Object.values(look.version.findings ?? {}).reduce((a, b) => a + b, 0), [look.version]);
  const t = d();
  const texts: Record<(typeof tabs)[number], string> = {
    ...t.tabs, files: t.filesTab(look.version.files), findings: found ? t.findingsTab(found) : t.tabs.findings,
  };
  const go = (tab: string) => at.go({ tab: tab === "read" ? "" : tab, file: "", from: "", to: "", line: "" }, true);
  return (
    <Tabs label={t.views} tabs={tabs.map((id) => [id, texts[id]])} open={open} onOpen={go}>
      {open === "read" && <Read look={look} />}
      {open === "needs" && <Needs look={look} />}
      {open === "files" && <Files look={look} />}
      {open === "versions" && <Versions look={look} />}
      {open === "findings" && <Findings look={look} />}
      {open === "use" && <Use look={look} />}
      {open === "connect" && <Connect look={look} />}
    </Tabs>
  );
}
