import { api, got, usePages } from "../api/client";
import { ActionButton, done, Empty, More, Shown, TableWrap, When } from "../ui";
import { moment } from "../words";
import { Part } from "./sections";
import { w } from "./words";

/** What one is not asked about any more, to take back. */
export function Grants() {
  const t = w();
  const pages = usePages((after, signal) => got(api.GET("/api/v1/grants", { params: { query: { after, limit: 100 } }, signal })), []);
  const revoke = async (id: string) => {
    await got(api.DELETE("/api/v1/grants/{grant}", { params: { path: { grant: id } } }));
    pages.set((pages.data ?? []).filter((g) => g.id !== id));
    done(t.revoked);
  };
  return (
    <Part title={t.tabs.grants} lead={t.grantsText}>
      <Shown asked={pages}>
        {(grants) => grants.length === 0 ? <Empty title={t.noGrants}>{t.noGrantsText}</Empty> : (
          <TableWrap label={t.tabs.grants}>
            <table class="table">
              <thead><tr><th scope="col">{t.tool}</th><th scope="col">{t.scope}</th><th scope="col">{t.created}</th><th scope="col">{t.ends}</th><th scope="col"><span class="visually-hidden">{t.actions}</span></th></tr></thead>
              <tbody>
                {grants.map((g) => (
                  <tr key={g.id}>
                    <td><strong>{g.name}</strong>{g.origin && <><br /><span class="small muted">{t.origin} {g.origin}</span></>}<br /><code class="small" title={g.subject}>{g.subject.replace("sha256:", "").slice(0, 12)}</code></td>
                    <td>{t.scopeWords[g.scope]}{g.session && <><br /><a class="small" href={`/chat/${g.session}`}>{t.conversation}</a></>}</td>
                    <td><When time={g.created} /></td>
                    <td class="nowrap">{g.expires ? moment(g.expires) : t.never}</td>
                    <td><ActionButton small act={() => revoke(g.id)} label={`${t.revoke}: ${g.name}`}>{t.revoke}</ActionButton></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </TableWrap>
        )}
      </Shown>
      <More pages={pages} />
    </Part>
  );
}
