import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { mayAdd, useScopes } from "../../../features/skills/namespaces";
import { pageOf } from "../../../features/skills/skilladdress";
import { api, got, useLoad } from "../../../shared/api/client";
import { msg } from "../../../shared/i18n/messages";
import { SelectField, Shown, Tabs } from "../../../shared/ui";
import { Page } from "../../../shared/ui/page";
import { ImportTab } from "./import";
import { UploadTab } from "./upload";
import "./add.css";

/** Add is the page to upload or import skills, or to upload a new version of one (?skill=ID). */
export default function Add() {
  const { query } = useLocation();
  return query.skill ? <AddVersion key={query.skill} id={query.skill} /> : <AddSkills />;
}

function AddVersion({ id }: { id: string }) {
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/skills/{skill}", { signal, params: { path: { skill: id } } })),
    [id],
  );
  const skill = load.data;
  return (
    <Page
      title={skill ? msg("add.versionTitle", { name: skill.displayName || skill.name }) : msg("skill.newVersion")}
      lead={msg("add.versionLead")}
      actions={
        <a class="button" href={pageOf(id)}>
          {msg("add.backToSkill")}
        </a>
      }
    >
      <Shown asked={load}>
        {(skill) =>
          skill.can.includes("skill.change") ? (
            <UploadTab namespace={skill.namespace} skill={skill.id} />
          ) : (
            <p class="note warn">{msg("add.versionOfOthers")}</p>
          )
        }
      </Shown>
    </Page>
  );
}

function AddSkills() {
  const { query, route } = useLocation();
  const tab = query.tab === "import" ? "import" : "upload";
  const places = useScopes().filter(([n]) => mayAdd(n));
  const [chosen, choose] = useState(query.namespace ?? "");
  const namespace = chosen || places[0]?.[0] || "";
  const open = (to: string) => route(`/library/add?tab=${to}`, true);
  return (
    <Page
      title={msg("add.title")}
      lead={msg("add.lead")}
      actions={
        <a class="button" href="/library">
          {msg("add.back")}
        </a>
      }
    >
      <div class="add-where">
        <SelectField
          label={msg("add.namespace")}
          hint={msg("add.namespaceHint")}
          value={namespace}
          onText={choose}
          options={places}
        />
      </div>
      <Tabs
        label={msg("add.kinds")}
        tabs={[
          ["upload", msg("add.upload")],
          ["import", msg("add.from")],
        ]}
        open={tab}
        onOpen={open}
      >
        {tab === "upload" ? <UploadTab namespace={namespace} /> : <ImportTab namespace={namespace} />}
      </Tabs>
    </Page>
  );
}
