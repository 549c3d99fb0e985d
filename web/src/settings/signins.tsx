import { api, got, useAsked } from "../api/client";
import { ActionButton, done, Shown, TableWrap, Tag, When } from "../ui";
import { moment } from "../words";
import { Part } from "./sections";
import { w } from "./words";

/** A browser in the words of its maker, shortened to what people know it by. */
export function browserOf(agent: string): string {
  const names: [RegExp, string][] = [[/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Firefox\//, "Firefox"], [/HeadlessChrome\//, "Chrome (headless)"], [/Chrome\//, "Chrome"], [/Safari\//, "Safari"]];
  const systems: [RegExp, string][] = [[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Windows/, "Windows"], [/Mac OS X/, "macOS"], [/Linux/, "Linux"]];
  const find = (list: [RegExp, string][]) => list.find(([is]) => is.test(agent))?.[1];
  const known = [find(names), find(systems)].filter(Boolean).join(" · ");
  return known || agent || "?";
}

/** Where one is signed in. */
export function SignIns() {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/users/{user}/sign-ins", { params: { path: { user: "me" } }, signal })), []);
  const end = async () => {
    await got(api.DELETE("/api/v1/users/{user}/sign-ins", { params: { path: { user: "me" } } }));
    await asked.again();
    done(t.endedOthers);
  };
  return (
    <Part title={t.tabs["sign-ins"]} lead={t.signIns}>
      <Shown asked={asked}>
        {({ items }) => (
          <>
            <TableWrap label={t.tabs["sign-ins"]}>
              <table class="table">
                <thead><tr><th scope="col">{t.browser}</th><th scope="col">{t.began}</th><th scope="col">{t.seen}</th><th scope="col">{t.ends}</th></tr></thead>
                <tbody>
                  {items.map((l, i) => (
                    <tr key={i}>
                      <td title={l.agent}>{browserOf(l.agent)} {l.current && <Tag look="good">{t.here}</Tag>}</td>
                      <td><When time={l.began} /></td><td><When time={l.seen} /></td><td class="nowrap">{moment(l.ends)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableWrap>
            {items.some((l) => !l.current) ? <div><ActionButton act={end}>{t.endOthers}</ActionButton></div> : <p class="muted small">{t.onlyHere}</p>}
          </>
        )}
      </Shown>
    </Part>
  );
}
