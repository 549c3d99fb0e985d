import { ShareTable, useShares } from "../../features/sharing/shares";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Empty, Shown } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** Shares lists the shared conversations of all users, without titles and links, and revokes them. */
export function Shares() {
  const load = useShares("all");
  return (
    <Part title={msg("admin.tabs.shares")} lead={msg("share.all")}>
      {me.value?.can.share === false && <div class="note">{msg("share.offText")}</div>}
      <Shown asked={load}>
        {(shares) =>
          shares.length ? <ShareTable shares={shares} load={load} owners /> : <Empty title={msg("share.none")} />
        }
      </Shown>
    </Part>
  );
}
