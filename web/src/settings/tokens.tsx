import { useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { me } from "../api/me";
import { Button, done, Empty, Shown, TableWrap, Tag, useConfirm, When } from "../ui";
import { moment } from "../words";
import { Part } from "./sections";
import { MakeToken } from "./token";
import { w } from "./words";

/** The tokens by which programs come in, and how one is made. */
export function Tokens() {
  const t = w();
  const [making, make] = useState(false);
  const asked = useTokens("me");
  const start = () => make(true);
  return (
    <Part title={t.tabs.tokens} lead={t.tokens} action={<Button look="primary" icon="plus" onClick={start}>{t.makeToken}</Button>}>
      {making && <MakeToken scopes={me.value!.scopes} onMade={() => void asked.again()} onClose={() => make(false)} />}
      <Shown asked={asked}>
        {({ items }) => (items.length === 0 ? <Empty title={t.noTokens}>{t.noTokensText}</Empty> : <TokenTable user="me" tokens={items} onEnd={() => void asked.again()} />)}
      </Shown>
    </Part>
  );
}

/** The tokens of a user, by id or me. */
export const useTokens = (user: string) => useAsked((signal) => got(api.GET("/api/v1/tokens", { params: { query: { user } }, signal })), [user]);

/** Tokens with what they may do, and a way to withdraw each. */
export function TokenTable({ user, tokens, onEnd }: { user: string; tokens: Schema["Token"][]; onEnd: () => void }) {
  const t = w();
  const confirm = useConfirm();
  const end = (token: Schema["Token"]) =>
    confirm.ask({
      title: t.withdrawTitle(token.name), children: t.withdrawText, yes: t.withdraw, danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/tokens/{token}", { params: { path: { token: token.id }, query: { user } } }));
        done(t.withdrawn);
        onEnd();
      },
    });
  return (
    <>
      {confirm.open}
      <TableWrap label={t.tabs.tokens}>
        <table class="table">
          <thead><tr><th scope="col">{t.tokenName}</th><th scope="col">{t.scopes}</th><th scope="col">{t.expires}</th><th scope="col">{t.used}</th><th scope="col"><span class="visually-hidden">{t.actions}</span></th></tr></thead>
          <tbody>
            {tokens.map((k) => (
              <tr key={k.id}>
                <td>{k.name}<br /><span class="small muted">{t.begins} <code>{k.prefix}</code></span></td>
                <td><span class="row">{k.scopes.map((s) => <Tag key={s} look={s === "admin" ? "warn" : ""}>{s}</Tag>)}</span></td>
                <td><Until expires={k.expires} /></td>
                <td>{k.used ? <When time={k.used} /> : <span class="muted">{t.notUsed}</span>}</td>
                <td><Button small look="danger" label={`${t.withdraw}: ${k.name}`} onClick={() => end(k)}>{t.withdraw}</Button></td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
    </>
  );
}

function Until({ expires }: { expires?: string }) {
  const t = w();
  if (!expires) return <>{t.forever}</>;
  if (new Date(expires) < new Date()) return <Tag look="bad" title={moment(expires)}>{t.expired}</Tag>;
  return <span class="nowrap">{t.until} {moment(expires)}</span>;
}
