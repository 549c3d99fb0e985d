import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { hasRole, isAdmin } from "../../api/me";
import { Page } from "../../shell/page";
import { SelectField, Tabs } from "../../ui";
import { useScopes } from "../places";
import { ImportTab } from "./import";
import { UploadTab } from "./upload";
import { w } from "./words";
import "./add.css";

/** Bringing skills into the library: from this machine, or from a place. */
export default function Add() {
  const t = w();
  const { query, route } = useLocation();
  const tab = query.tab === "import" ? "import" : "upload";
  const places = useScopes().filter(([n]) => mayAdd(n));
  const [chosen, choose] = useState(query.namespace ?? "");
  const namespace = chosen || places[0]?.[0] || "";
  const open = (to: string) => route(`/library/add?tab=${to}`, true);
  return (
    <Page title={t.title} lead={t.lead} actions={<a class="button" href="/library">{t.back}</a>}>
      <div class="add-where"><SelectField label={t.namespace} hint={t.namespaceHint} value={namespace} onText={choose} options={places} /></div>
      <Tabs label={t.kinds} tabs={[["upload", t.upload], ["import", t.from]]} open={tab} onOpen={open}>
        {tab === "upload" ? <UploadTab namespace={namespace} /> : <ImportTab namespace={namespace} />}
      </Tabs>
    </Page>
  );
}

/** Whether whoever is signed in may put skills there. */
function mayAdd(namespace: string): boolean {
  const [kind, id = ""] = namespace.split(":");
  return kind === "user" || (kind === "group" ? hasRole(id, "developer") : isAdmin.value);
}
