import { ShareTable, useShares } from "../../features/sharing/shares";
import { msg } from "../../shared/i18n/messages";
import { Empty, Shown } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** Shares lists the conversations that the user shares. */
export function Shares() {
  const load = useShares("me");
  return (
    <Part title={msg("settings.tabs.shares")} lead={msg("share.own")}>
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
