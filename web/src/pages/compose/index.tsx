import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useLoad } from "../../shared/api/client";
import { decoded } from "../../shared/api/route";
import { msg } from "../../shared/i18n/messages";
import { Empty, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Composer } from "./composer";
import { storedDraft, newKey } from "./drafts";
import { filesOf, skillWithFiles } from "./fetchskill";
import type { DraftFile } from "./files";
import { StartPage } from "./startpage";
import { templates } from "./templates";
import "./compose.css";

void import("../../shared/content/codemirror").catch(() => {}); // the editor tries again

/**
 * Compose shows the start page, a draft (?draft=KEY) or a skill by its ID (?version=NUMBER). A draft
 * starts from a template (&template=ID) or as a copy (&copy=SKILL). It is stored at its first change.
 */
export default function Compose() {
  const { path, query } = useLocation();
  const id = path.split("/")[2];
  if (id) return <EditSkill key={path + (query.version ?? "")} id={decoded(id)} version={Number(query.version) || 0} />;
  if (query.draft) return <NewSkill key={query.draft} draft={query.draft} {...query} />;
  if (query.copy) return <BeginCopy key={query.copy} id={query.copy} />;
  return <StartPage />;
}

function EditSkill({ id, version }: { id: string; version: number }) {
  const load = useLoad((stop) => skillWithFiles(id, version, stop), [id, version]);
  const earlier = storedDraft(id);
  if (!load.data)
    return (
      <Page title={msg("compose.compose")}>
        <Shown asked={load} waiting={msg("compose.preparing")}>
          {() => null}
        </Shown>
      </Page>
    );
  const { detail, files, newest, version: opened } = load.data;
  return (
    <Composer
      start={{
        key: id,
        of: detail,
        base: earlier?.base ?? opened,
        opened,
        newest,
        saved: files,
        storedDraft: earlier,
      }}
      again={load.again}
    />
  );
}

function NewSkill({ draft, template = "", copy }: { draft: string; template?: string; copy?: string }) {
  const [earlier] = useState(() => storedDraft(draft));
  const [files] = useState(() => (Object.hasOwn(templates, template) ? templates[template]!() : undefined));
  if (earlier) return <Composer start={{ key: draft, saved: [], storedDraft: earlier }} />;
  if (files) return <Template draft={draft} files={files} />;
  if (copy) return <CopySkill draft={draft} id={copy} />;
  return (
    <Page title={msg("compose.compose")}>
      <Empty
        title={msg("compose.gone")}
        actions={
          <a class="button primary" href="/compose">
            {msg("compose.toStart")}
          </a>
        }
      >
        {msg("compose.goneText")}
      </Empty>
    </Page>
  );
}

/** Template is a new skill that was not changed yet. */
function Template({ draft, files }: { draft: string; files: DraftFile[] }) {
  const [start] = useState({ key: draft, saved: files });
  return <Composer start={start} />;
}

/** BeginCopy gives the copy of a skill the key of a draft. */
function BeginCopy({ id }: { id: string }) {
  const { route } = useLocation();
  useEffect(() => route(`/compose?draft=${newKey()}&copy=${encodeURIComponent(id)}`, true), []);
  return null;
}

/** CopySkill is a new skill with the files of another one. */
function CopySkill({ draft, id }: { draft: string; id: string }) {
  const load = useLoad((stop) => filesOf(id, "current", stop), [id]);
  if (load.data) return <Template draft={draft} files={load.data} />;
  return (
    <Page title={msg("compose.compose")}>
      <Shown asked={load} waiting={msg("compose.preparing")}>
        {() => null}
      </Shown>
    </Page>
  );
}
