import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Submit, useSend } from "../../features/users/form";
import { PasswordField } from "../../features/users/passwordfield";
import { regroup, roleName } from "../../features/users/users";
import { api, got, Refusal, type Schema, signedOut, useLoad } from "../../shared/api/client";
import { me, loadMe, signOut, ways } from "../../shared/api/me";
import { decoded } from "../../shared/api/route";
import { formatTime } from "../../shared/i18n/format";
import { language } from "../../shared/i18n/language";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Problem, TextField, Waiting } from "../../shared/ui";
import { Door } from "../account/door";
import { sendWithRetry, Provider, Refused, SignIn, welcome } from "../account/signin";
import { SignInMessage } from "../account/signinerror";

type Opened = Schema["OpenedInvitation"];

/** linkOf returns the link at the start of a text. Chat programs append what follows it without a space. */
const linkOf = (text: string) => /^li_[0-9A-Za-z]{57}/.exec(text)?.[0] ?? text.slice(0, 64);

/** InvitePage shows the inviter and the group of an invitation. Users without an account create one, others join. */
export default function InvitePage() {
  const { path, route } = useLocation();
  const text = decoded(path.split("/")[2] ?? "");
  const link = linkOf(text);
  useEffect(() => {
    if (link !== text) route(`/invite/${encodeURIComponent(link)}`, true);
  }, [text]);
  const user = me.value?.user.id;
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/invite/{link}", { params: { path: { link } }, signal })),
    [link, user],
  );
  if (load.error instanceof Refusal && load.error.problem.status === 404)
    return (
      <Door title={msg("invite.gone")}>
        <p>{msg("invite.goneText")}</p>
        <Home />
      </Door>
    );
  if (load.error)
    return (
      <Door title={msg("invite.pageTitle")}>
        <Problem error={load.error} again={() => void load.again()} />
      </Door>
    );
  if (!load.data || load.busy)
    return (
      <Door title={msg("invite.pageTitle")}>
        <Waiting />
      </Door>
    );
  const i = load.data;
  return (
    <Door title={i.group ? msg("invite.join", { group: named(i) }) : msg("invite.joinHub")}>
      <p>
        {i.group
          ? msg("invite.says", {
              name: i.inviter,
              group: named(i),
              role: roleName(i.role ?? ""),
              hub: location.host,
            })
          : msg("invite.saysHub", { name: i.inviter, hub: location.host })}{" "}
        <span class="muted">{msg("invite.expires", { time: formatTime(i.expires) })}</span>
      </p>
      {signedOut.value ? <Stranger link={link} i={i} /> : <Member link={link} i={i} />}
    </Door>
  );
}

const focusHeading = () => document.querySelector<HTMLElement>(".account-door h1")?.focus();

const named = (i: Opened) => i.group?.display || i.group?.name || "";

const Home = () => (
  <a class="button" href="/">
    {msg("shell.home")}
  </a>
);

/** Stranger creates an account, or signs in. */
function Stranger({ link, i }: { link: string; i: Opened }) {
  const [known, setKnown] = useState(false);
  const [typed, type] = useState({ name: "", password: "" });
  useEffect(() => () => void requestAnimationFrame(focusHeading), []); // a sign-in removes its form
  return (
    <>
      {known ? (
        <SignIn stale={false} />
      ) : (
        <>
          <Refused />
          <NewAccount link={link} i={i} typed={typed} onType={type} />
          {ways.value?.provider && <p class="account-or muted small">{msg("account.or")}</p>}
          <Provider />
        </>
      )}
      <Button look="quiet" onClick={() => setKnown(!known)}>
        {known ? msg("invite.newAccount") : msg("invite.hasAccount")}
      </Button>
    </>
  );
}

interface NewAccountProps {
  link: string;
  i: Opened;
  /** What the user has entered, which outlasts a look at the other form. */
  typed: Schema["Credentials"];
  onType: (typed: Schema["Credentials"]) => void;
}

function NewAccount({ link, i, typed, onType }: NewAccountProps) {
  const { route } = useLocation();
  const { name, password } = typed;
  const { send, busy, error, fault } = useSend(
    async () => {
      const params = { path: { link } };
      const who = await got(sendWithRetry(() => api.POST("/api/v1/invite/{link}", { params, body: typed })));
      route("/", true); // the link may be used up, so the back button must not return here
      welcome(who);
      done(i.group ? msg("invite.joined", { group: named(i) }) : msg("invite.welcome"));
    },
    "name",
    "password",
  );
  // The reasons of the hub are in English.
  const wrong = (field: string, rules: string) => fault(field) && (language.value === "en" ? fault(field) : rules);
  const taken = error instanceof Refusal && error.problem.code === "exists";
  return (
    <form class="stack" onSubmit={send}>
      <TextField
        label={msg("account.name")}
        hint={msg("account.nameRules")}
        error={taken ? msg("invite.taken") : wrong("name", msg("account.nameRules"))}
        value={name}
        onText={(name) => onType({ ...typed, name })}
        name="username"
        autocomplete="username"
        autocapitalize="none"
        spellcheck={false}
        required
        autofocus
      />
      <PasswordField
        label={msg("account.password")}
        hint={msg("account.rules")}
        error={wrong("password", msg("account.rules"))}
        value={password}
        onText={(password) => onType({ ...typed, password })}
        autocomplete="new-password"
      />
      {error !== undefined && !taken && <SignInMessage error={error} />}
      <Submit busy={busy}>{msg("invite.accept")}</Submit>
    </form>
  );
}

/** Member lets a signed-in user join the group. */
function Member({ link, i }: { link: string; i: Opened }) {
  const { route } = useLocation();
  const member = i.member !== undefined;
  const role = roleName(i.role ?? "");
  const { send, busy, error } = useSend(async () => {
    const { group } = await got(api.POST("/api/v1/invite/{link}/join", { params: { path: { link } } }));
    await Promise.all([loadMe(), regroup()]);
    done(member ? msg("invite.became", { role }) : msg("invite.joined", { group: named(i) }));
    route(`/settings/groups/${group}`, true);
  });
  return (
    <form class="stack" onSubmit={send}>
      <p>
        {msg("invite.signedIn", { name: me.value?.user.name ?? "" })} {!i.group && msg("invite.hasOne")}
        {member && msg("invite.isMember", { role: roleName(i.member!) })}
      </p>
      {error !== undefined && <SignInMessage error={error} />}
      {i.group && !(member && ranks.indexOf(i.member!) >= ranks.indexOf(i.role!)) && (
        <Submit busy={busy}>{member ? msg("invite.become", { role }) : msg("invite.joinIt")}</Submit>
      )}
      <div class="row">
        {member && (
          <a class="button" href={`/settings/groups/${i.group!.id}`}>
            {msg("invite.openGroup")}
          </a>
        )}
        <Home />
        {ways.value?.mode !== "single" && (
          <Button look="quiet" onClick={() => void signOut()}>
            {msg("invite.otherUser")}
          </Button>
        )}
      </div>
    </form>
  );
}

const ranks = ["reporter", "developer", "maintainer", "owner"];
