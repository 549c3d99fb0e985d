import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useLoad } from "../../shared/api/client";
import { decoded } from "../../shared/api/route";
import { msg } from "../../shared/i18n/messages";
import { Empty, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Composer } from "./composer";
import { keep, storedDraft, newKey } from "./drafts";
import { filesOf, skillWithFiles } from "./fetchskill";
import { StartPage } from "./startpage";
import "./compose.css";

void import("../../shared/content/codemirror").catch(() => {}); // the editor tries again

/** Compose shows the start page, a draft (?draft=KEY), a copy (?copy=SKILL) or a skill by its ID (?version=NUMBER). */
export default function Compose() {
  const { path, query } = useLocation();
  const id = path.split("/")[2];
  if (id) return <EditSkill key={path + (query.version ?? "")} id={decoded(id)} version={Number(query.version) || 0} />;
  if (query.draft) return <NewSkill key={query.draft} draft={query.draft} />;
  if (query.copy) return <CopySkill key={query.copy} id={query.copy} />;
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

function NewSkill({ draft }: { draft: string }) {
  const earlier = storedDraft(draft);
  if (earlier)
    return <Composer start={{ key: draft, saved: earlier.touched ? [] : earlier.files, storedDraft: earlier }} />;
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

/** CopySkill creates a draft from the files of another skill, and opens it. */
function CopySkill({ id }: { id: string }) {
  const { route } = useLocation();
  const load = useLoad((stop) => filesOf(id, "current", stop), [id]);
  useEffect(() => {
    if (!load.data) return;
    const key = newKey();
    keep({ key, name: "", at: new Date().toISOString(), files: load.data, touched: true });
    route(`/compose?draft=${key}`, true);
  }, [load.data]);
  return (
    <Page title={msg("compose.compose")}>
      <Shown asked={load} waiting={msg("compose.preparing")}>
        {() => null}
      </Shown>
    </Page>
  );
}
