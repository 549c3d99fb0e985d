import { api, got, useLoad } from "../../shared/api/client";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, Shown, TableWrap, Tag, When } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** browserOf names a browser from its user agent string. */
export function browserOf(agent: string): string {
  const names: [RegExp, string][] = [
    [/Edg\//, "Edge"],
    [/OPR\//, "Opera"],
    [/Firefox\//, "Firefox"],
    [/HeadlessChrome\//, "Chrome (headless)"],
    [/Chrome\//, "Chrome"],
    [/Safari\//, "Safari"],
  ];
  const systems: [RegExp, string][] = [
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac OS X/, "macOS"],
    [/Linux/, "Linux"],
  ];
  const find = (list: [RegExp, string][]) => list.find(([is]) => is.test(agent))?.[1];
  const known = [find(names), find(systems)].filter(Boolean).join(" · ");
  return known || agent || "?";
}

/** SignIns lists the signed-in browsers of the user. */
export function SignIns() {
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/users/{user}/sign-ins", { params: { path: { user: "me" } }, signal })),
    [],
  );
  const end = async () => {
    await got(api.DELETE("/api/v1/users/{user}/sign-ins", { params: { path: { user: "me" } } }));
    await load.again();
    done(msg("settings.endedOthers"));
  };
  return (
    <Part title={msg("settings.tabs.sign-ins")} lead={msg("settings.signIns")}>
      <Shown asked={load}>
        {({ items }) => (
          <>
            <TableWrap label={msg("settings.tabs.sign-ins")}>
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">{msg("settings.browser")}</th>
                    <th scope="col">{msg("settings.began")}</th>
                    <th scope="col">{msg("settings.seen")}</th>
                    <th scope="col">{msg("settings.ends")}</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((l, i) => (
                    <tr key={i}>
                      <td title={l.agent}>
                        {browserOf(l.agent)} {l.current && <Tag look="good">{msg("settings.here")}</Tag>}
                      </td>
                      <td>
                        <When time={l.began} />
                      </td>
                      <td>
                        <When time={l.seen} />
                      </td>
                      <td class="nowrap">{formatTime(l.ends)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableWrap>
            {items.some((l) => !l.current) ? (
              <div>
                <ActionButton act={end}>{msg("settings.endOthers")}</ActionButton>
              </div>
            ) : (
              <p class="muted small">{msg("settings.onlyHere")}</p>
            )}
          </>
        )}
      </Shown>
    </Part>
  );
}
