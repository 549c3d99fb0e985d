import { decoded } from "../api/address";
import { useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { useAsked } from "../api/client";
import { Page } from "../shell/page";
import { Empty, Shown } from "../ui";
import { Composer } from "./composer";
import { filesOf, skillWithFiles } from "./fetched";
import { keep, kept, newKey } from "./kept";
import { StartPage } from "./start";
import { w } from "./words";
import "./compose.css";

/** The composer: where one begins, a new skill (?draft=KEY), a copy (?copy=SKILL), or a skill by its id. */
export default function Compose() {
  const { path, query } = useLocation();
  const id = path.split("/")[2];
  if (id) return <EditSkill key={id} id={decoded(id)} />;
  if (query.draft) return <NewSkill key={query.draft} draft={query.draft} />;
  if (query.copy) return <CopySkill key={query.copy} id={query.copy} />;
  return <StartPage />;
}

function EditSkill({ id }: { id: string }) {
  const asked = useAsked((stop) => skillWithFiles(id, stop), [id]);
  const earlier = kept(id);
  if (!asked.data) return <Page title={w().compose}><Shown asked={asked} waiting={w().preparing}>{() => null}</Shown></Page>;
  const { detail, files } = asked.data;
  return <Composer start={{ key: id, of: detail, base: earlier?.base ?? detail.number, saved: files, kept: earlier }} again={asked.again} />;
}

function NewSkill({ draft }: { draft: string }) {
  const earlier = kept(draft);
  if (earlier) return <Composer start={{ key: draft, saved: earlier.touched ? [] : earlier.files, kept: earlier }} />;
  return (
    <Page title={w().compose}>
      <Empty title={w().gone} actions={<a class="button primary" href="/compose">{w().toStart}</a>}>{w().goneText}</Empty>
    </Page>
  );
}

/** Makes work on a new skill of the files of another, and goes there. */
function CopySkill({ id }: { id: string }) {
  const { route } = useLocation();
  const asked = useAsked((stop) => filesOf(id, "current", stop), [id]);
  useEffect(() => {
    if (!asked.data) return;
    const key = newKey();
    keep({ key, name: "", at: new Date().toISOString(), files: asked.data, touched: true });
    route(`/compose?draft=${key}`, true);
  }, [asked.data]);
  return <Page title={w().compose}><Shown asked={asked} waiting={w().preparing}>{() => null}</Shown></Page>;
}
