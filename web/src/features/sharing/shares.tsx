import { api, got, type Pages, type Schema, usePages } from "../../shared/api/client";
import { formatTime, size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Copy, done, More, TableWrap, useConfirm } from "../../shared/ui";
import { userName, useUserNames } from "../users/users";

export type Share = Schema["Share"];

/** addressOf returns the address of a share. */
export const addressOf = (share: Share) => `${location.origin}/shared/${share.link}`;

/** useShares loads the shares of the user, or those of all users for administrators. */
export const useShares = (owner: "me" | "all") =>
  usePages((after, signal) => got(api.GET("/api/v1/shares", { params: { query: { owner, after } }, signal })), [owner]);

/** audienceText says who can open a share. */
export const audienceText = (audience: Share["audience"]) =>
  msg(audience === "link" ? "share.anyone" : "share.members");

/** ShareTable lists shares and revokes them. Other users' shares have no title and no link. */
export function ShareTable({ shares, load, owners }: { shares: Share[]; load: Pages<Share>; owners?: boolean }) {
  const confirm = useConfirm();
  const revoke = (share: Share) =>
    confirm.ask({
      title: msg("share.revokeTitle"),
      children: msg("share.revokeText"),
      yes: msg("share.revoke"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/shares/{share}", { params: { path: { share: share.id } } }));
        done(msg("share.revoked"));
        await load.again();
      },
    });
  const name = (share: Share) => share.title || msg("share.untitled");
  return (
    <>
      {confirm.open}
      <TableWrap label={msg("share.list")}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{owners ? msg("share.owner") : msg("share.conversation")}</th>
              <th scope="col">{msg("share.expires")}</th>
              <th scope="col">
                <span class="visually-hidden">{msg("share.actions")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shares.map((s) => (
              <tr key={s.id}>
                <td>
                  {owners ? <OwnerName id={s.owner} /> : <a href={`/shared/${s.link}`}>{name(s)}</a>}
                  <br />
                  <span class="small muted">
                    {formatTime(s.created)} · {size(s.size)} · {audienceText(s.audience)}
                  </span>
                </td>
                <td>{formatTime(s.expires)}</td>
                <td>
                  <span class="row">
                    {s.link && <Copy text={addressOf(s)} label={msg("share.copy", { title: name(s) })} />}
                    <Button
                      small
                      look="danger"
                      label={msg("share.revokeOf", { title: owners ? formatTime(s.created) : name(s) })}
                      onClick={() => revoke(s)}
                    >
                      {msg("share.revoke")}
                    </Button>
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
      <More pages={load} />
    </>
  );
}

function OwnerName({ id }: { id: string }) {
  useUserNames();
  return <>{userName(id)}</>;
}
