import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { away } from "../api/client";
import { Page } from "../shell/page";
import { Button, Menu, MenuItem, Tabs, useConfirm } from "../ui";
import { useChecked } from "./check";
import { CheckPane } from "./checkpane";
import { FieldsPane } from "./fieldspane";
import { FilesPane } from "./filespane";
import { FindPane } from "./findpane";
import { forget } from "./kept";
import { Notes } from "./notes";
import { SaveDialog } from "./save";
import { TextPane } from "./textpane";
import { TryDialog } from "./try";
import { download } from "./upload";
import { Verdict } from "./verdict";
import { useView, type Pane, type View } from "./view";
import { w } from "./words";
import { useWork, type Start, type Work } from "./work";

/** Where a skill is written: its parts at one side, its text at the other, and what the hub says of it above. */
export function Composer({ start, again }: { start: Start; again?: () => Promise<void> }) {
  const work = useWork(start);
  const said = useChecked(work);
  const view = useView();
  const [dialog, setDialog] = useState<"save" | "try">();
  const close = () => setDialog(undefined);
  const nothing = !!start.of && !work.changed;
  useEffect(() => onSaveKey(() => nothing || setDialog("save")), [nothing]);
  const title = start.of ? w().edit(start.of.name) : work.name || w().newSkill;
  const actions = (
    <>
      <Button icon="play" onClick={() => setDialog("try")}>{w().tryIt}</Button>
      <Button look="primary" icon="check" onClick={() => setDialog("save")} disabled={nothing}>{w().save}</Button>
      <MoreActions work={work} />
    </>
  );
  return (
    <Page title={title} wide actions={actions}>
      <Notes work={work} again={again} />
      <Verdict work={work} said={said} />
      <div class={view.wide ? "compose-panes" : "stack"}>
        <Parts work={work} view={view} said={said} />
        {view.wide && <div class="compose-text"><TextPane work={work} view={view} said={said} /></div>}
      </div>
      {dialog === "save" && <SaveDialog work={work} said={said} onClose={close} />}
      {dialog === "try" && <TryDialog work={work} said={said} onClose={close} />}
    </Page>
  );
}

function Parts({ work, view, said }: { work: Work; view: View; said: ReturnType<typeof useChecked> }) {
  const t = w().panes;
  const remarks = said.data?.diagnostics.filter((d) => d.severity !== "info").length;
  const tabs: [Pane, string][] = [["fields", t.fields], ["files", t.files], ["check", remarks ? `${t.check} (${remarks})` : t.check], ["find", view.wide ? t.find : w().findShort]];
  if (!view.wide) tabs.splice(1, 0, ["text", t.text]);
  return (
    <div class="compose-parts">
      <Tabs label={w().views} tabs={tabs} open={view.pane} onOpen={(pane) => view.show({ pane })}>
        {view.pane === "fields" && <FieldsPane work={work} />}
        {view.pane === "text" && <TextPane work={work} view={view} said={said} />}
        {view.pane === "files" && <FilesPane work={work} view={view} />}
        {view.pane === "check" && <CheckPane work={work} view={view} said={said} />}
        {view.pane === "find" && <FindPane work={work} />}
      </Tabs>
    </div>
  );
}

function MoreActions({ work }: { work: Work }) {
  const { route } = useLocation();
  const confirm = useConfirm();
  const discard = async () => {
    work.settle();
    forget(work.key);
    route(work.of ? `/library/${encodeURIComponent(work.of.id)}` : "/compose");
  };
  const ask = () => confirm.ask({ title: w().throwTitle, children: <p>{w().throwText(work.name || w().untitled)}</p>, yes: w().throwAway, danger: true, act: discard });
  return (
    <>
      <Menu label={w().more}>
        <MenuItem onClick={() => void download(work)} disabled={away.value}>{w().download}</MenuItem>
        {work.of && <MenuItem href={`/library/${encodeURIComponent(work.of.id)}`}>{w().stop}</MenuItem>}
        <MenuItem danger onClick={ask} disabled={!work.changed}>{w().discard}</MenuItem>
      </Menu>
      {confirm.open}
    </>
  );
}

/** Ctrl+S, or Cmd+S, anywhere on the page. */
function onSaveKey(save: () => void): () => void {
  const key = (e: KeyboardEvent) => {
    if (!(e.ctrlKey || e.metaKey) || e.altKey || e.key.toLowerCase() !== "s") return;
    e.preventDefault();
    if (!document.querySelector("dialog[open]")) save();
  };
  addEventListener("keydown", key);
  return () => removeEventListener("keydown", key);
}
