import { ShareTable, useShares } from "../../features/sharing/shares";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Empty, Shown } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** Shares lists the conversations that the user shares. */
export function Shares() {
  const load = useShares("me");
  return (
    <Part title={msg("settings.tabs.shares")} lead={msg("share.own")}>
      {me.value?.can.share === false && <div class="note">{msg("share.offText")}</div>}
      <Shown asked={load}>
        {(shares) =>
          shares.length ? (
            <ShareTable shares={shares} load={load} />
          ) : (
            <Empty title={msg("share.none")}>{msg("share.noneText")}</Empty>
          )
        }
      </Shown>
    </Part>
  );
}
