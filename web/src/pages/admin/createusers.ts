import { newPassword, type NewUser } from "../../features/csv/newusers";
import { api, got, isUnreachable, Refusal } from "../../shared/api/client";
import { me } from "../../shared/api/me";

/** What became of a user of a file. */
export interface Result {
  /** The idempotency key of the user's creation: repeating it after a lost response creates no second one. */
  key: string;
  password: string;
  /** The ID, once the user is created. */
  id?: string;
  error?: string;
  /** Whether the hub refused to create the user, who has no password then. */
  refused?: boolean;
  done?: boolean;
}

/** Users of a file that are being created. */
export interface UserImport {
  users: NewUser[];
  /** The results by line. They have the passwords before the users are created. */
  results: Record<number, Result>;
  /** Whether the users are created with passwords. */
  withPasswords: boolean;
  /** Whether the file was read as GB 18030, which is a guess. */
  guessed: boolean;
  /** Whether any user was sent to the hub. */
  began: boolean;
  /** Whether the user has saved the passwords. */
  downloaded: boolean;
}

/** newImport returns the import of the users of a file. */
export const newImport = (users: NewUser[], guessed: boolean, withPasswords: boolean): UserImport => ({
  users,
  withPasswords,
  results: Object.fromEntries(
    users.filter((u) => !u.errors.length).map((u) => [u.line, { key: newPassword(), password: newPassword() }]),
  ),
  guessed,
  began: false,
  downloaded: false,
});

let unfinished: { by: string; import: UserImport } | undefined;

/** keepImport keeps an import with passwords that nobody has saved, also while its administrator signs in again. */
export const keepImport = (now: UserImport | undefined) =>
  void (unfinished = now?.began && me.value ? { by: me.value.user.id, import: now } : undefined);

/** keptImport returns the import that the signed-in administrator began. */
export const keptImport = (): UserImport | undefined =>
  unfinished?.by === me.value?.user.id ? unfinished?.import : undefined;

/**
 * createUsers creates the users of a file that are not done, and adds them to their groups. If no further user can be
 * created, because the hub cannot be reached or the permission is gone, it throws the reason.
 */
export async function createUsers(
  { users, withPasswords, results }: UserImport,
  onResult: (line: number, result: Result) => void,
  stop: AbortSignal,
) {
  for (const u of users) {
    if (!results[u.line] || results[u.line]!.done) continue;
    if (stop.aborted) return;
    const result = { ...results[u.line]!, error: undefined, refused: undefined };
    try {
      await createUser(u, withPasswords, result);
      onResult(u.line, { ...result, done: true });
    } catch (error) {
      const ends = isUnreachable(error) || (error instanceof Refusal && [401, 403].includes(error.problem.status));
      const refused = error instanceof Refusal && (error.problem.status === 422 || error.problem.code === "exists");
      onResult(u.line, { ...result, error: (error as Error).message, refused: !result.id && refused });
      if (ends) throw error;
    }
  }
}

async function createUser({ name, display, email, groups }: NewUser, withPassword: boolean, result: Result) {
  if (!result.id) {
    const body = { name, display, email, password: withPassword ? result.password : undefined };
    const params = { header: { "Idempotency-Key": result.key } };
    result.id = (await patient(() => got(api.POST("/api/v1/users", { body, params })))).id;
  }
  for (const { id: group, role } of groups) {
    const params = { path: { group, user: result.id } };
    await patient(() => got(api.PUT("/api/v1/groups/{group}/members/{user}", { params, body: { role } })));
  }
}

/** patient repeats a request that comes too soon after others, or while the hub is busy. */
async function patient<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      const early = error instanceof Refusal && (error.problem.status === 429 || error.problem.code === "busy");
      if (!early || attempt === 30) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(error.wait ?? 2, 30)));
    }
  }
}
