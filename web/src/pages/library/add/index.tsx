import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { mayAdd, useScopes } from "../../../features/skills/namespaces";
import { msg } from "../../../shared/i18n/messages";
import { SelectField, Tabs } from "../../../shared/ui";
import { Page } from "../../../shared/ui/page";
import { ImportTab } from "./import";
import { UploadTab } from "./upload";
import "./add.css";

/** Add is the page to upload or import skills. */
export default function Add() {
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
