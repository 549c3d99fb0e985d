import { useRef, useState } from "preact/hooks";
import { save, writeCSV } from "../../features/csv/csv";
import { newPassword, type NewUser, readUsers } from "../../features/csv/newusers";
import { groupName, roleName } from "../../features/users/users";
import { api, got, Refusal, useLoad } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Check, Dialog, Problem, Tag, Waiting } from "../../shared/ui";
import { TableWrap } from "../../shared/ui/table";
import { allGroups, allUsers } from "./alluserslist";

/** What became of a user of a file. */
interface Result {
  /** The ID, once the user is created. */
  id?: string;
  password?: string;
  error?: string;
  done?: boolean;
}

/** ImportUsers creates users from a CSV file: it shows them first, then creates them. */
export function ImportUsers({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const known = useLoad(async (signal) => {
    const [users, groups] = await Promise.all([allUsers(signal), allGroups(signal)]);
    return {
      users: new Set(users.map((u) => u.name)),
      groups: new Map(groups.map((g) => [g.name.toLowerCase(), g.id])),
    };
  }, []);
  const [users, setUsers] = useState<NewUser[]>();
  const [error, setError] = useState<unknown>();
  const [passwords, setPasswords] = useState(ways.value?.password !== false);
  const [results, setResults] = useState<Record<number, Result>>({});
  const [busy, setBusy] = useState(false);
  const kept = useRef(results);
  const take = async (file: File | undefined) => {
    setError(undefined);
    setUsers(undefined);
    if (!file || !known.data) return;
    try {
      if (file.size > 1 << 20) throw new Error(msg("admin.csvTooLarge"));
      setUsers(readUsers(await file.text(), known.data));
    } catch (e) {
      setError(e);
    }
  };
  const good = users?.filter((u) => !u.errors.length) ?? [];
  const left = good.filter((u) => !results[u.line]?.done);
  const make = async () => {
    setBusy(true);
    for (const u of left) {
      const result = await makeUser(u, passwords, kept.current[u.line] ?? {});
      kept.current = { ...kept.current, [u.line]: result };
      setResults(kept.current);
    }
    setBusy(false);
    onMade();
  };
  const began = Object.keys(results).length > 0;
  const withPasswords = good.filter((u) => results[u.line]?.id && results[u.line]?.password);
  const download = () =>
    save(
      "new-users.csv",
      "text/csv",
      writeCSV([
        ["name", "email", "password"],
        ...withPasswords.map((u) => [u.name, u.email, results[u.line]!.password]),
      ]),
    );
  return (
    <Dialog
      title={msg("admin.csvTitle")}
      wide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{began ? msg("ui.close") : msg("admin.back")}</Button>
          {withPasswords.length > 0 && !busy && (
            <Button icon="download" onClick={download}>
              {msg("admin.csvPasswords")}
            </Button>
          )}
          {(left.length > 0 || busy) && (
            <Button look="primary" disabled={busy} aria-busy={busy} onClick={() => void make()}>
              {began ? msg("admin.csvAgain", { count: left.length }) : msg("admin.csvMake", { count: left.length })}
            </Button>
          )}
        </>
      }
    >
      {!began && (
        <>
          <p>{msg("admin.csvText")}</p>
          <pre class="small">{"name,display,email,groups,role\nada,Ada,ada@example.com,sea;air,developer"}</pre>
          {known.error && <Problem error={known.error} again={() => void known.again()} />}
          {known.data ? (
            <label class="field">
              <span class="label">{msg("admin.csvFile")}</span>
              <input
                class="input"
                type="file"
                accept=".csv,text/csv,text/plain"
                onChange={(e) => void take(e.currentTarget.files?.[0])}
              />
            </label>
          ) : (
            !known.error && <Waiting />
          )}
          {ways.value?.password !== false && (
            <Check
              label={msg("admin.csvWithPasswords")}
              hint={msg("admin.csvWithPasswordsHint")}
              checked={passwords}
              onCheck={setPasswords}
            />
          )}
        </>
      )}
      {!!error && <Problem error={error} />}
      {withPasswords.length > 0 && !busy && <p class="note warn">{msg("admin.csvOnce")}</p>}
      {users && <UserTable users={users} results={results} />}
    </Dialog>
  );
}

function UserTable({ users, results }: { users: NewUser[]; results: Record<number, Result> }) {
  const wrong = users.filter((u) => u.errors.length).length;
  return (
    <>
      <p role="status">
        {msg("admin.csvFound", { count: users.length })} {wrong > 0 && msg("admin.csvWrong", { count: wrong })}
      </p>
      <TableWrap label={msg("admin.csvTitle")}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{msg("admin.csvLine")}</th>
              <th scope="col">{msg("admin.name")}</th>
              <th scope="col">{msg("admin.email")}</th>
              <th scope="col">{msg("admin.csvGroups")}</th>
              <th scope="col">{msg("admin.csvResult")}</th>
            </tr>
          </thead>
          <tbody>
            {users.map((u) => (
              <tr key={u.line}>
                <td>{u.line}</td>
                <td class="mono">{u.name}</td>
                <td>{u.email}</td>
                <td>
                  {u.groups.map(groupName).join(", ")} {u.groups.length > 0 && <Tag>{roleName(u.role)}</Tag>}
                </td>
                <td>
                  <State user={u} result={results[u.line]} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
    </>
  );
}

function State({ user, result }: { user: NewUser; result?: Result }) {
  if (user.errors.length)
    return (
      <>
        <Tag look="bad">{msg("admin.csvSkipped")}</Tag> {user.errors.join("; ")}
      </>
    );
  if (!result) return <>{msg("admin.csvReady")}</>;
  return (
    <>
      {result.done ? <Tag look="good">{msg("admin.csvMade")}</Tag> : <Tag look="bad">{msg("admin.csvFailed")}</Tag>}{" "}
      {result.error} {result.id && result.password && <code>{result.password}</code>}
    </>
  );
}

/** makeUser creates a user and adds it to its groups. It continues after an earlier attempt. */
async function makeUser(u: NewUser, withPassword: boolean, before: Result): Promise<Result> {
  const result: Result = { ...before, error: undefined };
  try {
    if (!result.id) {
      result.password = withPassword ? newPassword() : undefined;
      const { name, display, email } = u;
      const body = { name, display, email, password: result.password };
      result.id = (await patient(() => got(api.POST("/api/v1/users", { body })))).id;
    }
    const user = result.id;
    for (const group of u.groups) {
      const params = { path: { group, user } };
      await patient(() => got(api.PUT("/api/v1/groups/{group}/members/{user}", { params, body: { role: u.role } })));
    }
    return { ...result, done: true };
  } catch (error) {
    return { ...result, error: (error as Error).message };
  }
}

/** patient repeats a request that comes too soon after others. */
async function patient<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof Refusal) || error.problem.status !== 429 || attempt === 30) throw error;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}
