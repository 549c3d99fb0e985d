import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { done, failed, Menu, MenuItem } from "../../shared/ui";
import { Defaults } from "./defaults";
import { Delete } from "./delete";
import { can } from "./opened";
import { Publish } from "./publish";
import { Update } from "./update";

interface ActionsProps {
  skill: Schema["SkillDetail"];
  again: () => Promise<void>;
}

type Open = "publish" | "defaults" | "update" | "delete";

/** Actions is the menu of a skill. */
export function Actions({ skill, again }: ActionsProps) {
  const [open, setOpen] = useState<Open>();

  const change = (body: Schema["SkillChange"], message: string) => () => {
    got(api.PATCH("/api/v1/skills/{skill}", { params: { path: { skill: skill.id } }, body }))
      .then(({ references }) => {
        const users = references ? references.seen.length + references.others : 0;
        done(users ? `${message} ${msg("skill.stillUsed", { count: users })}` : message);
        return again();
      })
      .catch(failed);
  };
  const close = () => setOpen(undefined);
  const changes = can(skill, "skill.change");
  return (
    <>
      <Menu label={msg("skill.more")}>
        {changes && (
          <MenuItem href={`/library/add?skill=${encodeURIComponent(skill.id)}`}>{msg("skill.newVersion")}</MenuItem>
        )}
        {changes && skill.source && <MenuItem onClick={() => setOpen("update")}>{msg("skill.update")}</MenuItem>}
        {changes && skill.source && (
          <MenuItem
            onClick={change(
              { pinned: !skill.source.pinned },
              skill.source.pinned ? msg("skill.unpinnedNow") : msg("skill.pinnedNow"),
            )}
          >
            {skill.source.pinned ? msg("skill.unpin") : msg("skill.pin")}
          </MenuItem>
        )}
        <MenuItem onClick={() => setOpen("defaults")}>{msg("skill.makeDefault")}</MenuItem>
        {can(skill, "skill.publish") && <MenuItem onClick={() => setOpen("publish")}>{msg("skill.publish")}</MenuItem>}
        {can(skill, "skill.hide") && (
          <MenuItem
            onClick={change({ hidden: !skill.hidden }, skill.hidden ? msg("skill.shownNow") : msg("skill.hiddenNow"))}
          >
            {skill.hidden ? msg("skill.unhide") : msg("skill.hide")}
          </MenuItem>
        )}
        {can(skill, "skill.delete") && (
          <MenuItem danger onClick={() => setOpen("delete")}>
            {msg("skill.delete")}
          </MenuItem>
        )}
      </Menu>
      {open === "publish" && <Publish skill={skill} again={again} onClose={close} />}
      {open === "defaults" && <Defaults skill={skill} onClose={close} />}
      {open === "update" && <Update skill={skill} again={again} onClose={close} />}
      {open === "delete" && <Delete skill={skill} onClose={close} />}
    </>
  );
}
