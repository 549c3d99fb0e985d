import { useState } from "preact/hooks";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Empty, Shown, TableWrap, Tag, useConfirm, When } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { MakeToken } from "./token";

/** Tokens lists the API tokens of the user and creates new ones. */
export function Tokens() {
  const [making, make] = useState(false);
  const load = useTokens("me");
  const start = () => make(true);
  return (
    <Part
      title={msg("settings.tabs.tokens")}
      lead={msg("settings.tokens")}
      action={
        <Button look="primary" icon="plus" onClick={start}>
          {msg("settings.makeToken")}
        </Button>
      }
    >
      {making && <MakeToken scopes={me.value!.scopes} onMade={() => void load.again()} onClose={() => make(false)} />}
      <Shown asked={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={msg("settings.noTokens")}>{msg("settings.noTokensText")}</Empty>
          ) : (
            <TokenTable user="me" tokens={items} onEnd={() => void load.again()} />
          )
        }
      </Shown>
    </Part>
  );
}

/** useTokens loads the tokens of a user, given by ID or as "me". */
export const useTokens = (user: string) =>
  useLoad((signal) => got(api.GET("/api/v1/tokens", { params: { query: { user } }, signal })), [user]);

/** TokenTable lists tokens with their scopes and revokes them. */
export function TokenTable({ user, tokens, onEnd }: { user: string; tokens: Schema["Token"][]; onEnd: () => void }) {
  const confirm = useConfirm();
  const end = (token: Schema["Token"]) =>
    confirm.ask({
      title: msg("settings.withdrawTitle", { n: token.name }),
      children: msg("settings.withdrawText"),
      yes: msg("settings.withdraw"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/tokens/{token}", { params: { path: { token: token.id }, query: { user } } }));
        done(msg("settings.withdrawn"));
        onEnd();
      },
    });
  return (
    <>
      {confirm.open}
      <TableWrap label={msg("settings.tabs.tokens")}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{msg("settings.tokenName")}</th>
              <th scope="col">{msg("settings.scopes")}</th>
              <th scope="col">{msg("settings.expires")}</th>
              <th scope="col">{msg("settings.used")}</th>
              <th scope="col">
                <span class="visually-hidden">{msg("settings.actions")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {tokens.map((k) => (
              <tr key={k.id}>
                <td>
                  {k.name}
                  <br />
                  <span class="small muted">
                    {msg("settings.begins")} <code>{k.prefix}</code>
                  </span>
                </td>
                <td>
                  <span class="row">
                    {k.scopes.map((s) => (
                      <Tag key={s} look={s === "admin" ? "warn" : ""}>
                        {s}
                      </Tag>
                    ))}
                  </span>
                </td>
                <td>
                  <Until expires={k.expires} />
                </td>
                <td>{k.used ? <When time={k.used} /> : <span class="muted">{msg("settings.notUsed")}</span>}</td>
                <td>
                  <Button small look="danger" label={`${msg("settings.withdraw")}: ${k.name}`} onClick={() => end(k)}>
                    {msg("settings.withdraw")}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
    </>
  );
}

function Until({ expires }: { expires?: string }) {
  if (!expires) return <>{msg("settings.forever")}</>;
  if (new Date(expires) < new Date())
    return (
      <Tag look="bad" title={formatTime(expires)}>
        {msg("settings.expired")}
      </Tag>
    );
  return (
    <span class="nowrap">
      {msg("settings.until")} {formatTime(expires)}
    </span>
  );
}
