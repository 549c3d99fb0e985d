import { useLocation } from "preact-iso";
import { ways } from "../../shared/api/me";
import { decoded } from "../../shared/api/route";
import { msg } from "../../shared/i18n/messages";
import { Door } from "./door";
import { Setup } from "./setup";
import { SignIn } from "./signin";

/** SignInPage shows the sign-in, or the first run if opened by its link. */
export default function SignInPage() {
  const { path } = useLocation();
  const link = /^\/setup\/(.+)$/.exec(path)?.[1];

  const first = link && ways.value?.setup;
  return (
    <Door title={first ? msg("account.setup") : msg("account.title")}>
      {first ? <Setup link={decoded(link)} /> : <SignIn stale={!!link} />}
    </Door>
  );
}
