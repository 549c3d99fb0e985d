import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { done, failed, Menu, MenuItem } from "../ui";
import { Defaults } from "./defaults";
import { Delete } from "./delete";
import { can } from "./detail";
import { Publish } from "./publish";
import { Update } from "./update";
import { d } from "./words-detail";

interface ActionsProps {
  skill: Schema["SkillDetail"];
  again: () => Promise<void>;
}

type Open = "publish" | "defaults" | "update" | "delete";

/** What else may be done with a skill. */
export function Actions({ skill, again }: ActionsProps) {
  const [open, setOpen] = useState<Open>();
  const t = d();
  const change = (body: Schema["SkillChange"], said: string) => () => {
    got(api.PATCH("/api/v1/skills/{skill}", { params: { path: { skill: skill.id } }, body }))
      .then(({ references }) => {
        const users = references ? references.seen.length + references.others : 0;
        done(users ? `${said} ${t.stillUsed(users)}` : said);
        return again();
      })
      .catch(failed);
  };
  const close = () => setOpen(undefined);
  const changes = can(skill, "skill.change");
  return (
    <>
      <Menu label={t.more}>
        {changes && <MenuItem href={`/library/add?skill=${encodeURIComponent(skill.id)}`}>{t.newVersion}</MenuItem>}
        {changes && skill.source && <MenuItem onClick={() => setOpen("update")}>{t.update}</MenuItem>}
        {changes && skill.source && <MenuItem onClick={change({ pinned: !skill.source.pinned }, skill.source.pinned ? t.unpinnedNow : t.pinnedNow)}>{skill.source.pinned ? t.unpin : t.pin}</MenuItem>}
        <MenuItem onClick={() => setOpen("defaults")}>{t.makeDefault}</MenuItem>
        {can(skill, "skill.publish") && <MenuItem onClick={() => setOpen("publish")}>{t.publish}</MenuItem>}
        {can(skill, "skill.hide") && <MenuItem onClick={change({ hidden: !skill.hidden }, skill.hidden ? t.shownNow : t.hiddenNow)}>{skill.hidden ? t.unhide : t.hide}</MenuItem>}
        {can(skill, "skill.delete") && <MenuItem danger onClick={() => setOpen("delete")}>{t.delete}</MenuItem>}
      </Menu>
      {open === "publish" && <Publish skill={skill} again={again} onClose={close} />}
      {open === "defaults" && <Defaults skill={skill} onClose={close} />}
      {open === "update" && <Update skill={skill} again={again} onClose={close} />}
      {open === "delete" && <Delete skill={skill} onClose={close} />}
    </>
  );
}

/** What the dialogs of the menu get. */
export interface Opened extends ActionsProps {
  onClose: () => void;
}
