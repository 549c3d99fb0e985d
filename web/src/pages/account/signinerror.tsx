import { Refusal } from "../../shared/api/client";
import { findMsg } from "../../shared/i18n/messages";
import { Problem } from "../../shared/ui";

/** SignInMessage explains a failed sign-in, with a message of the page for known codes. */
export function SignInMessage({ error }: { error: unknown }) {
  const words = error instanceof Refusal ? findMsg("account.reasons", error.problem.code) : undefined;
  return words ? (
    <div class="note bad" role="alert">
      {words}
    </div>
  ) : (
    <Problem error={error} />
  );
}
