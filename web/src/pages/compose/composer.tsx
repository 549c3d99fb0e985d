import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { away } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, Menu, MenuItem, Tabs, useConfirm } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { CheckPane } from "./checkpane";
import { deleteDraft } from "./drafts";
import { useWork, type Start, type Work } from "./draftstate";
import { FieldsPane } from "./fieldspane";
import { FilesPane } from "./filespane";
import { FindPane } from "./findpane";
import { Notes } from "./notes";
import { SaveDialog } from "./savedialog";
import { TextPane } from "./textpane";
import { TryDialog } from "./trydialog";
import { download } from "./upload";
import { useChecked } from "./validation";
import { Verdict } from "./verdict";
import { useView, type Pane, type View } from "./viewstate";

/** Composer edits a skill: its parts on one side, its text on the other, the check above. */
export function Composer({ start, again }: { start: Start; again?: () => Promise<void> }) {
  const work = useWork(start);
  const result = useChecked(work);
  const view = useView();
  const [dialog, setDialog] = useState<"save" | "try">();
  const close = () => setDialog(undefined);
  const nothing = !!start.of && !work.changed;
  useEffect(() => onSaveKey(() => nothing || setDialog("save")), [nothing]);
  const title = start.of ? msg("compose.edit", { name: start.of.name }) : work.name || msg("compose.newSkill");
  const actions = (
    <>
      <Button icon="play" onClick={() => setDialog("try")}>
        {msg("compose.tryIt")}
      </Button>
      <Button look="primary" icon="check" onClick={() => setDialog("save")} disabled={nothing}>
        {msg("compose.save")}
      </Button>
      <MoreActions work={work} />
    </>
  );
  return (
    <Page title={title} wide actions={actions}>
      <Notes work={work} again={again} />
      <Verdict work={work} result={result} />
      <div class={view.wide ? "compose-panes" : "stack"}>
        <Parts work={work} view={view} result={result} />
        {view.wide && (
          <div class="compose-text">
            <TextPane work={work} view={view} result={result} />
          </div>
        )}
      </div>
      {dialog === "save" && <SaveDialog work={work} result={result} onClose={close} />}
      {dialog === "try" && <TryDialog work={work} result={result} onClose={close} />}
    </Page>
  );
}

function Parts({ work, view, result }: { work: Work; view: View; result: ReturnType<typeof useChecked> }) {
  const remarks = result.data?.diagnostics.filter((d) => d.severity !== "info").length;
  const tabs: [Pane, string][] = [
    ["fields", msg("compose.panes.fields")],
    ["files", msg("compose.panes.files")],
    ["check", remarks ? `${msg("compose.panes.check")} (${remarks})` : msg("compose.panes.check")],
    ["find", view.wide ? msg("compose.panes.find") : msg("compose.findShort")],
  ];
  if (!view.wide) tabs.splice(1, 0, ["text", msg("compose.panes.text")]);
  return (
    <div class="compose-parts">
      <Tabs label={msg("compose.views")} tabs={tabs} open={view.pane} onOpen={(pane) => view.show({ pane })}>
        {view.pane === "fields" && <FieldsPane work={work} />}
        {view.pane === "text" && <TextPane work={work} view={view} result={result} />}
        {view.pane === "files" && <FilesPane work={work} view={view} />}
        {view.pane === "check" && <CheckPane work={work} view={view} result={result} />}
        {view.pane === "find" && <FindPane work={work} />}
      </Tabs>
    </div>
  );
}

function MoreActions({ work }: { work: Work }) {
  const { route } = useLocation();
  const confirm = useConfirm();
  const discard = async () => {
    work.markSaved();
    deleteDraft(work.key);
    route(work.of ? `/library/${encodeURIComponent(work.of.id)}` : "/compose");
  };
  const ask = () =>
    confirm.ask({
      title: msg("compose.throwTitle"),
      children: <p>{msg("compose.throwText", { name: work.name || msg("compose.untitled") })}</p>,
      yes: msg("compose.throwAway"),
      danger: true,
      act: discard,
    });
  return (
    <>
      <Menu label={msg("compose.more")}>
        <MenuItem onClick={() => void download(work)} disabled={away.value}>
          {msg("compose.download")}
        </MenuItem>
        {work.of && <MenuItem href={`/library/${encodeURIComponent(work.of.id)}`}>{msg("compose.stop")}</MenuItem>}
        <MenuItem danger onClick={ask} disabled={!work.changed}>
          {msg("compose.discard")}
        </MenuItem>
      </Menu>
      {confirm.open}
    </>
  );
}

/** onSaveKey handles Ctrl+S and Cmd+S on the whole page. */
function onSaveKey(save: () => void): () => void {
  const key = (e: KeyboardEvent) => {
    if (!(e.ctrlKey || e.metaKey) || e.altKey || e.key.toLowerCase() !== "s") return;
    e.preventDefault();
    if (!document.querySelector("dialog[open]")) save();
  };
  addEventListener("keydown", key);
  return () => removeEventListener("keydown", key);
}
