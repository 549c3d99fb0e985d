import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { chatWith, composeOf, packageOf, useAddress } from "../../features/skills/skilladdress";
import { TryVersion } from "../../features/skills/tryversion";
import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, Copy, Icon, Shown, Tabs, Tag } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Actions } from "./actions";
import { NamespaceName, Rated, ReviewState } from "./cells";
import { addLine } from "./clients";
import { Connect } from "./connect";
import { Files } from "./files";
import { titleOf } from "./filter";
import { Findings } from "./findings";
import { can, type Looked } from "./opened";
import { Read } from "./overview";
import { versionName } from "./phrases";
import { Stars } from "./rating";
import { Needs } from "./requirements";
import { Newer, Requested, loadUpdates, type Updates } from "./upstream";
import { Use } from "./usage";
import { Versions } from "./versions";

/** Detail is the page of a skill. */
export default function Detail({ id }: { id: string }) {
  const load = useLoad(
    async (signal) => {
      const skill = await got(api.GET("/api/v1/skills/{skill}", { signal, params: { path: { skill: id } } }));
      return { skill, updates: await loadUpdates(skill, signal) };
    },
    [id],
  );
  if (!load.data)
    return (
      <Page title={msg("library.library")}>
        <Back />
        <Shown asked={load} waiting={msg("skill.waiting")}>
          {() => null}
        </Shown>
      </Page>
    );
  return <SkillDetail {...load.data} again={load.again} />;
}

const Back = () => (
  <a class="row small" href="/library">
    <Icon name="left" size={16} />
    {msg("library.library")}
  </a>
);

function SkillDetail({ skill, updates, again }: Pick<Looked, "skill" | "again"> & { updates: Updates }) {
  const number = useAddress().get("version");
  const other = number && Number(number) !== skill.number ? number : "";
  const version = useLoad(
    async (signal) =>
      other
        ? got(
            api.GET("/api/v1/skills/{skill}/versions/{version}", {
              signal,
              params: { path: { skill: skill.id, version: other } },
            }),
          )
        : undefined,
    [skill.id, other],
  );
  const shown = other ? version.data : skill.currentVersion;
  return (
    <Page
      title={titleOf(skill)}
      beside={skill.installable && <Install name={skill.name} />}
      lead={<Lead text={skill.description} />}
      actions={
        <Buttons skill={skill} again={again} number={other ? Number(other) : skill.number} withheld={shown?.withheld}>
          {shown && <TryVersion skill={skill} version={shown} />}
        </Buttons>
      }
    >
      <Facts skill={skill} again={again} />
      {other ? (
        <Older number={other} skill={skill} version={version.data} />
      ) : (
        <Newer skill={skill} updates={updates} again={again} />
      )}
      {shown && String(shown.number) === (other || String(skill.number)) ? (
        <Views look={{ skill, version: shown, again }} />
      ) : other ? (
        <Shown asked={version}>{() => null}</Shown>
      ) : (
        <p class="note">{msg("skill.noRead")}</p>
      )}
    </Page>
  );
}

/** Install shows the command that installs the skill. */
function Install({ name }: { name: string }) {
  const line = addLine(location.origin, name);
  return (
    <div class="row keep library-install">
      <code dir="ltr">{line}</code>
      <Copy text={line} label={msg("skill.copyInstall")} />
    </div>
  );
}

/** The number of characters of a description before it is cut. */
const enough = 240;

/** Lead shows the description. It cuts a long one until the user expands it. */
function Lead({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  if (text.length <= enough) return <>{text}</>;
  return (
    <>
      <span class={all ? "" : "library-cut"}>{text}</span>{" "}
      <button type="button" class="library-link" aria-expanded={all} onClick={() => setAll(!all)}>
        {all ? msg("skill.showLess") : msg("skill.showAll")}
      </button>
    </>
  );
}

function Buttons({
  skill,
  again,
  number,
  withheld,
  children,
}: Pick<Looked, "skill" | "again"> & { number: number; withheld?: boolean; children: ComponentChildren }) {
  return (
    <>
      {can(skill, "skill.use") && (
        <a class="button primary" href={chatWith(skill.name)}>
          <Icon name="chat" />
          {msg("skill.useInChat")}
        </a>
      )}
      {children}
      {can(skill, "skill.change") && !withheld && (
        <a class="button" href={composeOf(skill.id, number === skill.number ? undefined : number)}>
          <Icon name="compose" />
          {msg("skill.edit")}
        </a>
      )}
      {can(skill, "skill.download") && (
        <a class="button" href={packageOf(skill.id, number)} download>
          <Icon name="download" />
          {msg("skill.download")}
        </a>
      )}
      <Actions skill={skill} again={again} />
    </>
  );
}

/** Facts shows the key facts below the title. */
function Facts({ skill, again }: Pick<Looked, "skill" | "again">) {
  return (
    <div class="row library-facts">
      <Back />
      <code>{skill.name}</code>
      <NamespaceName namespace={skill.namespace} />
      <Tag>{versionName(skill.number, skill.version)}</Tag>
      <ReviewState skill={skill} />
      {skill.hidden && <Tag look="warn">{msg("library.hidden")}</Tag>}
      {skill.source?.pinned && (
        <Tag>
          <Icon name="pin" size={12} />
          {msg("skill.pinned")}
        </Tag>
      )}
      {can(skill, "skill.rate") ? <Stars skill={skill} again={again} /> : <Rated rating={skill.rating} />}
    </div>
  );
}

/** Older warns that the shown version is not the current one. */
function Older({ number, skill, version }: { number: string } & Pick<Looked, "skill"> & Partial<Looked>) {
  const at = useAddress();
  return (
    <>
      <div class="note warn">
        <div class="row">
          <span class="grow">{msg("skill.older", { n: number })}</span>
          <Button small onClick={() => at.go({ version: "", file: "" })}>
            {msg("skill.toCurrent")}
          </Button>
        </div>
      </div>
      {version?.state === "changes-requested" && <Requested skill={skill} version={version} />}
    </>
  );
}

const tabs = ["read", "needs", "files", "versions", "findings", "use", "connect"] as const;

function Views({ look }: { look: Looked }) {
  const at = useAddress();
  const open = tabs.find((t) => t === at.get("tab")) ?? "read";
  const found = useMemo(() => Object.values(look.version.findings ?? {}).reduce((a, b) => a + b, 0), [look.version]);

  const text = (id: (typeof tabs)[number]) => {
    if (id === "files") return msg("skill.filesTab", { n: look.version.files });
    return id === "findings" && found ? msg("skill.findingsTab", { n: found }) : msg(`skill.tabs.${id}`);
  };
  const go = (tab: string) => at.go({ tab: tab === "read" ? "" : tab, file: "", from: "", to: "", line: "" }, true);
  return (
    <Tabs label={msg("skill.views")} tabs={tabs.map((id) => [id, text(id)])} open={open} onOpen={go}>
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
