import { api, got, usePages } from "../../shared/api/client";
import { formatTime } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { ActionButton, done, Empty, More, Shown, TableWrap, When } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** Grants lists the saved permissions and revokes them. */
export function Grants() {
  const pages = usePages(
    (after, signal) => got(api.GET("/api/v1/grants", { params: { query: { after, limit: 100 } }, signal })),
    [],
  );
  const revoke = async (id: string) => {
    await got(api.DELETE("/api/v1/grants/{grant}", { params: { path: { grant: id } } }));
    pages.set((pages.data ?? []).filter((g) => g.id !== id));
    done(msg("settings.revoked"));
  };
  return (
    <Part title={msg("settings.tabs.grants")} lead={msg("settings.grantsText")}>
      <Shown asked={pages}>
        {(grants) =>
          grants.length === 0 ? (
            <Empty title={msg("settings.noGrants")}>{msg("settings.noGrantsText")}</Empty>
          ) : (
            <TableWrap label={msg("settings.tabs.grants")}>
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">{msg("settings.tool")}</th>
                    <th scope="col">{msg("settings.scope")}</th>
                    <th scope="col">{msg("settings.created")}</th>
                    <th scope="col">{msg("settings.ends")}</th>
                    <th scope="col">
                      <span class="visually-hidden">{msg("settings.actions")}</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {grants.map((g) => (
                    <tr key={g.id}>
                      <td>
                        <strong>{g.name}</strong>
                        {g.origin && (
                          <>
                            <br />
                            <span class="small muted">
                              {msg("settings.origin")} {g.origin}
                            </span>
                          </>
                        )}
                        <br />
                        <code class="small" title={g.subject}>
                          {g.subject.replace("sha256:", "").slice(0, 12)}
                        </code>
                      </td>
                      <td>
                        {findMsg("settings.scopeWords", g.scope)}
                        {g.read_only && (
                          <>
                            <br />
                            <span class="small muted">{msg("settings.readTool")}</span>
                          </>
                        )}
                        {g.session && (
                          <>
                            <br />
                            <a class="small" href={`/chat/${g.session}`}>
                              {msg("settings.conversation")}
                            </a>
                          </>
                        )}
                      </td>
                      <td>
                        <When time={g.created} />
                      </td>
                      <td class="nowrap">{g.expires ? formatTime(g.expires) : msg("settings.never")}</td>
                      <td>
                        <ActionButton small act={() => revoke(g.id)} label={`${msg("settings.revoke")}: ${g.name}`}>
                          {msg("settings.revoke")}
                        </ActionButton>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableWrap>
          )
        }
      </Shown>
      <More pages={pages} />
    </Part>
  );
}
