import { Refusal } from "../../shared/api/client";
import { language } from "../../shared/i18n/language";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Problem } from "../../shared/ui";

/** duration returns a number of seconds in words, such as "9 minutes". */
function duration(seconds: number): string {
  const [n, unit] = seconds < 100 ? [seconds, "second"] : [Math.ceil(seconds / 60), "minute"];
  return n.toLocaleString(language.value, { style: "unit", unit, unitDisplay: "long" });
}

/** SignInMessage explains a failed sign-in, with a message of the page for known codes. */
export function SignInMessage({ error }: { error: unknown }) {
  const refusal = error instanceof Refusal ? error : undefined;
  const words =
    refusal?.problem.code === "too_often" && refusal.wait
      ? msg("account.tooOften", { time: duration(refusal.wait) })
      : refusal && findMsg("account.reasons", refusal.problem.code);
  return words ? (
    <div class="note bad" role="alert">
      {words}
    </div>
  ) : (
    <Problem error={error} />
  );
}
